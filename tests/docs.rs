//! What the documentation promises.

use std::collections::BTreeSet;

use dynamiccl_env::cluster::Cluster;
use serde_json::Value;

use crate::util::repository;

/// The text of the fenced blocks of one language in a markdown page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let starts = page.match_indices(&fence).map(|(at, _)| &page[at + fence.len()..]);
    starts.map(|rest| rest.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The keys of all objects in a document.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            found.insert(key.clone());
            keys(value, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

/// The cluster file that the page shows.
fn example() -> Cluster {
    let page = repository("docs/clusters.md");
    let example = blocks(&page, "toml").into_iter().next().expect("an example in docs/clusters.md");
    Cluster::from_toml("docs/clusters.md", &example).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_cluster_page_shows_a_file_that_can_be_read() {
    let cluster = example();
    assert!(cluster.inter.is_some() && cluster.graphs.single.is_some() && cluster.graphs.multi.is_some());
}

#[test]
fn the_cluster_page_explains_every_field() {
    let mut cluster = example();
    let multi = cluster.graphs.multi.as_mut().expect("graphs on several nodes");
    (multi.collnet_chain, multi.collnet_direct) = (Some(multi.tree), Some(multi.tree));
    let mut fields = BTreeSet::new();
    keys(&serde_json::to_value(&cluster).expect("a cluster is JSON too"), &mut fields);
    let page = repository("docs/clusters.md");
    let missing: Vec<_> = fields.iter().filter(|field| !page.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "docs/clusters.md says nothing about {missing:?}");
}
