//! Folders that cannot be written, and disks that are full.

use std::path::{Path, PathBuf};
use std::process::Command;

use nexus_tests::call::As;
use nexus_tests::command::{run, scratch};
use nexus_tests::process::{LIMIT, Node, Setup, agree};
use nexus_tests::wait;
use serde_json::json;

use super::{Intact, refused};

/// A small file system of its own; gone with the value.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    /// Mounts it.
    fn new(options: &str) -> Result<Self, String> {
        let folder = tempfile::tempdir_in(scratch()).unwrap();
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "nexus-tests"]).arg(folder.path());
        let output = command.output().map_err(|error| format!("mount cannot be run: {error}"))?;
        if output.status.success() {
            Ok(Self { folder })
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Fills what is free, and returns the file that does.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        let block = vec![0_u8; 64 * 1024];
        // It ends with the disk, which is what it is for.
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A file system that stays mounted harms nobody; its nodes are gone by then.
        Command::new("umount").arg("-l").arg(self.path()).status().ok();
    }
}

fn disk(options: &str) -> Option<Disk> {
    match Disk::new(options) {
        Ok(disk) => Some(disk),
        Err(why) => {
            eprintln!("skipped: disks that are full or read-only, which need root: {why}");
            None
        }
    }
}

async fn up(data: &Path) -> nexus_tests::command::Ended {
    let node = Node::new("nowhere");
    let mut command = node.command(&["up", "--http", "127.0.0.1:0", "--cluster", "127.0.0.1:0"]);
    command.arg("--data").arg(data);
    run(command).await
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_cannot_be_written_are_named() {
    let mut intact = Intact::new().await;
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a folder").unwrap();
    let ended = up(&file).await;
    refused(&ended, 1, &[&file.display().to_string(), "--data"]);
    let ended = up(&file.join("below")).await;
    refused(&ended, 1, &[&file.display().to_string(), "--data"]);
    if let Some(disk) = disk("ro,size=1m") {
        let ended = up(&disk.path().join("data")).await;
        refused(&ended, 1, &[&disk.path().display().to_string(), "read-only", "--data"]);
    }
    if let Some(disk) = disk("size=256k") {
        disk.fill();
        let ended = up(&disk.path().join("data")).await;
        refused(&ended, 1, &[&disk.path().display().to_string(), "full"]);
    }
    intact.check("folders that cannot be written").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_loses_nothing_that_was_answered() {
    let Some(disk) = disk("size=96m") else { return };
    let setup = Setup { data: Some(disk.path().join("data")), ..Setup::default() };
    let mut node = Node::with("cramped", setup);
    node.start(&[]).await;
    let text = "x".repeat(30_000);
    let say = async |node: &Node, count: usize| {
        let who = As { instance: "writer", request: None };
        let message = format!("{count} {text}");
        node.http().call("send_message", json!({"message": message}), who).await
    };
    let mut answered = 0;
    for _ in 0..10 {
        say(&node, answered).await.unwrap();
        answered += 1;
    }
    let filler = disk.fill();
    // What is in RocksDB's buffers may still find room for a while.
    let failed = loop {
        match say(&node, answered).await {
            Ok(_) => answered += 1,
            // It may be in the log or not: its outcome is not known.
            Err(failed) => break failed,
        }
        assert!(answered < 10_000, "a full disk takes everything");
    };
    assert!(["disk_full", "internal"].contains(&failed.code()), "{failed}");
    assert!(names_the_disk(&failed.to_string()), "{failed}");
    // A fault of the disk stops the node, with what to do.
    let ended = node.refused().await;
    assert_eq!(ended.code(), 1, "{ended}");
    assert!(!ended.stderr.contains("panicked"), "{ended}");
    let last = ended.stderr.lines().rev().take(3).collect::<String>();
    assert!(last.contains("error: ") && names_the_disk(&last), "{ended}");
    eprintln!("full after {answered} messages: {failed}");
    // With room it has all that it answered.
    std::fs::remove_file(filler).unwrap();
    node.start(&[]).await;
    let history = node.http().history().await.unwrap();
    assert!(history.len() >= answered, "{} of {answered} messages are there", history.len());
    for (count, message) in history.iter().take(answered).enumerate() {
        let number = message["text"].as_str().unwrap().split(' ').next().unwrap();
        assert_eq!(number, count.to_string(), "an answered message is not in its place");
    }
    say(&node, usize::MAX).await.unwrap();
}

/// One machine of three whose disk is full stops, and says why; the others go on without it, and
/// with room it comes back to what they have.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_of_one_stops_that_one_alone() {
    let Some(disk) = disk("size=96m") else { return };
    let setup = Setup { data: Some(disk.path().join("data")), ..Setup::default() };
    // First the leader, and once it is back a follower.
    let mut cramped = Node::with("cramped", setup);
    cramped.start(&[]).await;
    let one = Node::join("one", &cramped, &["--voter"]).await;
    let two = Node::join("two", &cramped, &["--voter"]).await;
    wait::until("three voters", LIMIT, async || {
        let status = one.status().await;
        let members = status["members"].as_array().into_iter().flatten();
        let voters = members.filter(|member| member["role"] == "voter").count();
        if voters == 3 { Ok(()) } else { Err(format!("{status:#}")) }
    })
    .await;
    let text = "x".repeat(30_000);
    let mut answered = 0_usize;
    for role in ["leader", "follower"] {
        let leads = one.status().await["leader"] == "cramped";
        assert_eq!(leads, role == "leader");
        let filler = disk.fill();
        let ended = loop {
            assert!(answered < 20_000, "a full disk takes everything");
            let request = format!("message-{answered}");
            let who = As { instance: "writer", request: Some(&request) };
            let message = json!({"message": format!("{answered} {text}")});
            // The one beside it answers, whatever becomes of the full one.
            one.http().call("send_message", message, who).await.unwrap_or_else(|failed| {
                panic!("message {answered}, {role}: {failed}\n{}", cramped.log())
            });
            answered += 1;
            if let Some(ended) = cramped.ended() {
                break ended;
            }
        };
        assert_eq!(ended.code(), 1, "{ended}");
        assert!(!ended.stderr.contains("panicked"), "{ended}");
        let last = ended.stderr.lines().rev().take(3).collect::<String>();
        assert!(last.contains("error: ") && names_the_disk(&last), "{ended}");
        std::fs::remove_file(filler).unwrap();
        cramped.start(&[]).await;
        agree(&[&one, &cramped, &two], LIMIT).await;
        let history = cramped.http().history().await.unwrap();
        for (count, message) in history.iter().enumerate() {
            let number = message["text"].as_str().unwrap().split(' ').next().unwrap();
            assert_eq!(number, count.to_string(), "a message is not in its place");
        }
        assert_eq!(history.len(), answered);
    }
}

/// Returns whether a text says that there is no room, in our words or in the system's.
fn names_the_disk(text: &str) -> bool {
    text.contains("disk is full") || text.contains("No space left")
}
