//! What a GPU's product name implies about the node around it.

use crate::cluster::hardware::NvFabric;

/// NVLink as a product has it.
#[derive(Debug, Clone, Copy)]
pub struct NvLink {
    /// How GPUs are usually joined where the words do not say.
    pub fabric: NvFabric,
    /// Links of one GPU.
    pub links: u32,
    /// GB/s that one GPU really moves one way, as public tables show.
    pub bandwidth: f64,
}

/// One product.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    /// A part of the name, lower case.
    pattern: &'static str,
    /// Compute capability × 10.
    pub sm: u32,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// NVLink, if it has any.
    pub nvlink: Option<NvLink>,
    /// GB/s that one GPU really moves over PCIe, one way.
    pub pcie: f64,
    /// Whether it sits beside a Grace CPU.
    pub grace: bool,
}

const fn nvlink(fabric: NvFabric, links: u32, bandwidth: f64) -> Option<NvLink> {
    Some(NvLink { fabric, links, bandwidth })
}

const fn product(pattern: &'static str, sm: u32, sms: u32, nvlink: Option<NvLink>, pcie: f64) -> Product {
    Product { pattern, sm, sms, nvlink, pcie, grace: false }
}

const fn on_grace(product: Product) -> Product {
    Product { grace: true, ..product }
}

use NvFabric::{CubeMesh, Mesh, Pairs, Switch};

/// More specific names first.
const PRODUCTS: [Product; 27] = [
    on_grace(product("gb300", 103, 152, nvlink(Switch, 18, 700.0), 45.0)),
    on_grace(product("gb200", 100, 152, nvlink(Switch, 18, 700.0), 45.0)),
    on_grace(product("gb10", 121, 48, None, 25.0)),
    on_grace(product("gh200", 90, 132, nvlink(Mesh, 18, 345.0), 45.0)),
    product("b300", 103, 148, nvlink(Switch, 18, 700.0), 45.0),
    product("b200", 100, 148, nvlink(Switch, 18, 700.0), 45.0),
    product("rtx pro 6000", 120, 188, None, 40.0),
    product("6000d", 120, 156, None, 40.0),
    product("h800", 90, 132, nvlink(Switch, 8, 163.5), 45.0),
    product("h200", 90, 132, nvlink(Switch, 18, 370.0), 45.0),
    product("h20", 90, 78, nvlink(Switch, 18, 370.0), 45.0),
    product("h100 pcie", 90, 114, nvlink(Pairs, 12, 120.0), 45.0),
    product("h100", 90, 132, nvlink(Switch, 18, 370.0), 45.0),
    product("a100-pcie", 80, 108, None, 20.0),
    product("a100", 80, 108, nvlink(Switch, 12, 235.0), 20.0),
    product("a6000", 86, 84, None, 20.0),
    product("a10", 86, 72, None, 20.0),
    product("l40", 89, 142, None, 20.0),
    product("l20", 89, 92, None, 20.0),
    product("4090", 89, 128, None, 16.0),
    product("4070", 89, 66, None, 8.0),
    product("3090", 86, 82, None, 12.0),
    product("v100", 70, 80, nvlink(CubeMesh, 6, 134.0), 10.0),
    product("p100", 60, 56, nvlink(CubeMesh, 4, 70.0), 10.0),
    product("t4", 75, 40, None, 5.0),
    product("2080", 75, 68, None, 5.0),
    product("titan", 70, 80, None, 10.0),
];

/// The product of a name; an A100 on PCIe where none is known.
pub fn of(name: &str) -> Product {
    const UNNAMED: Product = product("", 80, 108, None, 20.0);
    let name = name.to_lowercase();
    PRODUCTS.iter().find(|product| name.contains(product.pattern)).copied().unwrap_or(UNNAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_hides_a_more_specific_one() {
        for (at, product) in PRODUCTS.iter().enumerate() {
            let hidden = PRODUCTS[at..].iter().skip(1).find(|later| later.pattern.contains(product.pattern));
            assert!(hidden.is_none(), "{} hides {hidden:?}", product.pattern);
        }
        assert_eq!([of("NVIDIA H200").sms, of("H20 96 GB").sms], [132, 78]);
    }
}
