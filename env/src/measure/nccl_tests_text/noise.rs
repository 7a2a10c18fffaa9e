//! Messages of NCCL inside nccl-tests' lines.

/// Splits a line into nccl-tests' own text and a message of NCCL, which may follow it without a
/// space: `   8   2   float   sum   -1node0:12:34 [0] NCCL INFO …`.
pub(super) fn split_noise(line: &str) -> (&str, Option<&str>) {
    let Some(mark) = ["NCCL INFO", "NCCL WARN", "NCCL TRACE"].iter().find_map(|mark| line.find(mark)) else {
        return (line, None);
    };
    let before = &line[..mark];
    let mut at = 0;
    for token in before.split_whitespace() {
        let start = at + before[at..].find(token).unwrap_or(0);
        at = start + token.len();
        if is_origin(token) {
            // Only what follows other columns can be glued to one; a host's name may start with a digit.
            let glued = token.find(|c: char| c.is_ascii_alphabetic()).filter(|_| start > 0);
            return line
                .split_at_checked(start + glued.unwrap_or(0))
                .map_or(("", None), |(o, n)| (o, Some(n)));
        }
    }
    ("", Some(line))
}

/// Whether a token is the `host:pid:tid` that opens NCCL's messages.
fn is_origin(token: &str) -> bool {
    let mut parts = token.rsplitn(3, ':');
    let number =
        |part: Option<&str>| part.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    number(parts.next()) && number(parts.next()) && parts.next().is_some()
}
