//! How both sides show that they know the secret without ever sending it: each proves it for a number that the other has
//! just drawn (HMAC-SHA-256), so that nothing that was overheard is of use again.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::hex::{hex, unhex};

/// Who proves: what one side has said cannot be sent back to it as the other's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The coordinator.
    Coordinator,
    /// A worker.
    Worker,
}

fn mac(secret: &str, side: Side, said: &[&str]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key may have any length");
    mac.update(&[side as u8]);
    for word in said {
        mac.update(&(word.len() as u64).to_le_bytes());
        mac.update(word.as_bytes());
    }
    mac
}

/// The proof that goes with these words.
pub(crate) fn proof(secret: &str, side: Side, said: &[&str]) -> String {
    hex(&mac(secret, side, said).finalize().into_bytes())
}

/// Whether a proof goes with these words; in the same time whatever is wrong with it.
pub(crate) fn proves(proof: &str, secret: &str, side: Side, said: &[&str]) -> bool {
    unhex(proof).is_some_and(|bytes| mac(secret, side, said).verify_slice(&bytes).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Python's hmac module.
    #[test]
    fn it_is_hmac_sha_256() {
        let expected = "8907a3d0a0ab11b11829e535697aa5bfc035c705ed9ff4725ef9240508e74c09";
        assert_eq!(proof("sixteen letters.", Side::Worker, &["nonce", "1"]), expected);
    }

    #[test]
    fn only_the_same_words_with_the_same_secret_are_proved() {
        let said = ["nonce", "1"];
        let shown = proof("secret", Side::Worker, &said);
        assert!(proves(&shown, "secret", Side::Worker, &said));
        assert!(!proves(&shown, "other", Side::Worker, &said));
        assert!(!proves(&shown, "secret", Side::Coordinator, &said), "sent back");
        assert!(!proves(&shown, "secret", Side::Worker, &["nonce1", ""]), "words run together");
        assert!(!proves(&shown[2..], "secret", Side::Worker, &said));
        assert!(
            !proves("no number", "secret", Side::Worker, &said)
                && !proves("é", "secret", Side::Worker, &said)
        );
    }
}
