//! Headers that are made to be large in memory: many tiny things, long things, deep things.

/// The file with something added to its header, for each kind of thing and several amounts.
pub fn all(valid: &[u8]) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for data in [valid.len(), 1 << 20] {
        for share in [40, 20, 10, 6, 4, 3, 2, 1] {
            let room = data / share;
            files.extend(additions(room).into_iter().map(|header| file(&header, data)));
        }
    }
    files
}

fn file(header: &str, data: usize) -> Vec<u8> {
    let length = header.len() as u64;
    [&length.to_le_bytes(), header.as_bytes(), &vec![0; data.saturating_sub(header.len())]].concat()
}

/// Headers of about `room` bytes.
fn additions(room: usize) -> Vec<String> {
    let many = |each: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        let mut next = 0;
        while text.len() < room {
            text.push_str(&each(next));
            text.push(',');
            next += 1;
        }
        text.pop();
        text
    };
    let tensor =
        |name: usize| format!("\"{name}\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    vec![
        format!("{{\"__metadata__\":{{{}}}}}", many(&|n| format!("\"{n}\":\"\""))),
        format!("{{\"__metadata__\":{{\"a\":\"{}\"}}}}", "x".repeat(room)),
        format!("{{\"__metadata__\":{{\"a\":\"{}\"}}}}", "\\n".repeat(room / 2)),
        format!("{{{}}}", many(&|n| format!("\"\\u0041{n}\":0"))),
        format!("{{{}}}", many(&|_| "\"\":0".to_owned())),
        format!("{{{}}}", many(&|_| "\"\":[0]".to_owned())),
        format!("{{{}}}", many(&|_| "\"\":{\"\":[0]}".to_owned())),
        format!("{{{}}}", many(&|_| "\"\":[[[[]]]]".to_owned())),
        format!("{{\"a\":[{}]}}", many(&|_| "0".to_owned())),
        format!("{{\"a\":{{\"shape\":[{}]}}}}", many(&|_| "[]".to_owned())),
        format!("{{\"a\":{{\"dtype\":\"{}\",\"shape\":[],\"data_offsets\":[0,0]}}}}", "x".repeat(room)),
        format!("{{\"{}\":0}}", "\\n".repeat(room / 2)),
        format!("{{\"a\":{}}}", "[".repeat(room)),
        format!("{{{}}}", many(&tensor)),
    ]
}
