//! Words as XML has them, for algorithm files and for pictures.

/// Between tags.
pub fn text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Within the quotes of an attribute.
pub fn attribute(value: &str) -> String {
    text(value).replace('"', "&quot;")
}
