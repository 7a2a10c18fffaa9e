//! The page that a result with `--html` is: one look for all of them, and nothing to load beside it.
//!
//! It is well-formed XML too, so that a test can read it without a browser.

const STYLE: &str = include_str!("page.css");

/// A page of its own; `body` is markup.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}
