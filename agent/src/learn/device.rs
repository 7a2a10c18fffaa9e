//! Where gradients are worked out.

use std::fmt;
use std::str::FromStr;

use burn::tensor::Device as Backend;
use dynamiccl_spec::words::{UnknownWord, look_up};

/// A library, and what it computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// Plain Rust on the CPU.
    #[default]
    Flex,
    /// burn's older backend in plain Rust on the CPU.
    Ndarray,
    /// PyTorch's library on the CPU.
    Libtorch,
    /// The first NVIDIA GPU.
    Cuda,
}

/// A device that this build has no code for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("device \"{0}\" is not part of this build; build with `--features {0}`, or use \"flex\"")]
pub struct MissingDevice(pub Device);

impl Device {
    /// All of them.
    pub const ALL: [Device; 4] = [Device::Flex, Device::Ndarray, Device::Libtorch, Device::Cuda];

    /// Its name, which is also the name of the cargo feature that builds it; `flex` is always there.
    pub const fn name(self) -> &'static str {
        match self {
            Device::Flex => "flex",
            Device::Ndarray => "ndarray",
            Device::Libtorch => "libtorch",
            Device::Cuda => "cuda",
        }
    }

    /// burn's word for it, if this build has it.
    pub(super) fn open(self) -> Result<Backend, MissingDevice> {
        match self {
            Device::Flex => Ok(Backend::flex()),
            // Both are deprecated upstream and stay as long as the pinned release has them.
            #[cfg(feature = "ndarray")]
            #[allow(deprecated)]
            Device::Ndarray => Ok(Backend::ndarray()),
            #[cfg(feature = "libtorch")]
            #[allow(deprecated)]
            Device::Libtorch => Ok(Backend::libtorch()),
            #[cfg(feature = "cuda")]
            Device::Cuda => Ok(Backend::cuda(0)),
            #[allow(unreachable_patterns)]
            missing => Err(MissingDevice(missing)),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Device {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        look_up("device", word, &Device::ALL.map(|device| (device.name(), device)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_a_word_and_a_typo_an_answer() {
        for device in Device::ALL {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        let error = "cud".parse::<Device>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"cuda\""), "{error}");
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_device_that_is_not_built_names_its_feature() {
        let error = Device::Cuda.open().unwrap_err().to_string();
        assert!(error.contains("--features cuda"), "{error}");
        assert!(Device::Flex.open().is_ok());
    }
}
