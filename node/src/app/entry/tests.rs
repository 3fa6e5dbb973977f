//! What a folder, the settings and the command line make of each other.

use super::*;
use crate::config::{Flags, Folder};

fn config(expected: Option<&str>, flags: Flags) -> (tempfile::TempDir, Config) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::find(Some(place.path())).unwrap();
    if let Some(expected) = expected {
        let text = format!("{{\"clusterId\": \"{expected}\"}}");
        std::fs::write(folder.settings(), text).unwrap();
    }
    let config = Config::load(folder, flags).unwrap();
    (place, config)
}

fn member(cluster: &str) -> Held {
    Held::Member { cluster: cluster.to_owned(), node: 1, name: "n".to_owned() }
}

#[test]
fn an_empty_folder_makes_a_cluster_unless_one_is_expected() {
    let (_place, fresh) = config(None, Flags::default());
    assert_eq!(plan(&Held::Empty, &fresh).unwrap(), Plan::Found);
    let (_place, lost) = config(Some("c"), Flags::default());
    let error = plan(&Held::Empty, &lost).unwrap_err();
    let hint = error.hint().unwrap();
    for word in ["--data", "--join", "--new"] {
        assert!(hint.contains(word), "{hint}");
    }
    assert!(!hint.contains("restore"), "{hint}");
    let (_place, new) = config(Some("c"), Flags { new: true, ..Flags::default() });
    assert_eq!(plan(&Held::Empty, &new).unwrap(), Plan::Found);
}

#[test]
fn a_full_disk_is_told_however_deep_it_lies() {
    let full = || std::io::Error::from(ErrorKind::StorageFull);
    let deep = std::io::Error::other(anyhow::Error::new(full()).context("file cannot be written"));
    assert!(full_hint(&deep).unwrap().contains("free some space"));
    let words = std::io::Error::other("IO error: No space left on device: while appending");
    assert!(full_hint(&words).is_some());
    assert_eq!(full_hint(&std::io::Error::other("damaged")), None);
}

#[test]
fn a_member_goes_on_only_in_the_cluster_that_is_expected() {
    let (_place, fresh) = config(None, Flags::default());
    assert_eq!(plan(&member("c"), &fresh).unwrap(), Plan::Resume);
    let (_place, same) = config(Some("c"), Flags::default());
    assert_eq!(plan(&member("c"), &same).unwrap(), Plan::Resume);
    let error = plan(&member("d"), &same).unwrap_err().to_string();
    assert!(error.contains("of cluster d") && error.contains("expect cluster c"), "{error}");
}

#[test]
fn the_user_is_told_at_first_and_then_now_and_again() {
    let mut words = Words::default();
    assert!(words.is_silent());
    let told: Vec<u64> =
        (5..=100).filter(|second| words.are_due(Duration::from_secs(*second))).collect();
    assert_eq!(told, [5, 35, 65, 95]);
}

#[test]
fn a_join_without_anywhere_to_look_is_refused() {
    for (settings, flags, off) in [
        ("{}", Flags { no_mdns: true, ..Flags::default() }, Some("--no-mdns")),
        (r#"{"mdns": false}"#, Flags::default(), Some("\"mdns\": false in settings.json")),
        (r#"{"seeds": ["10.0.0.1"]}"#, Flags { no_mdns: true, ..Flags::default() }, None),
        ("{}", Flags::default(), None),
    ] {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::find(Some(place.path())).unwrap();
        std::fs::write(folder.settings(), settings).unwrap();
        let config = Config::load(folder, flags).unwrap();
        match (can_look(&config), off) {
            (Ok(()), None) => {}
            (Err(error), Some(off)) => {
                assert!(error.to_string().contains(off), "{error}");
                assert!(error.hint().unwrap().contains("--seed ADDRESS:PORT"));
            }
            (outcome, _) => panic!("{settings}: {outcome:?}"),
        }
    }
}
