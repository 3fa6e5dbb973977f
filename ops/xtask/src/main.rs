//! `cargo run -p nexus-xtask -- verify|fix`: checks the house, or puts right what a tool can.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is what it is for")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, bail};
use nexus_xtask::{Tree, tidy, wrap};

/// The crates that keep goldens, each rewritten by its own tests.
const GOLDEN_CRATES: [&str; 3] = ["nexus-contract", "nexus-domain", "nexus-xtask"];

/// The variable that makes golden tests write instead of compare.
const UPDATE: &str = "UPDATE_GOLDENFILES";

const USAGE: &str = "\
usage: cargo run -p nexus-xtask -- VERB
  verify   check the house rules, the format and the goldens; writes nothing
  fix      break wide comments, format the code, rewrite the goldens; review the diff like code";

fn main() -> ExitCode {
    let verb = std::env::args().nth(1).unwrap_or_default();
    let result = match verb.as_str() {
        "verify" => verify(),
        "fix" => fix(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn verify() -> anyhow::Result<()> {
    let findings = tidy::check(&Tree::read(&root())?);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    cargo(&["fmt", "--all", "--check"], false)?;
    golden_tests(false)
}

fn fix() -> anyhow::Result<()> {
    let root = root();
    for (path, text) in Tree::read(&root)?.rust() {
        let wrapped = wrap::comments(text);
        if wrapped != text {
            std::fs::write(root.join(path), wrapped)
                .with_context(|| format!("cannot write {path}"))?;
            println!("comments broken in {path}");
        }
    }
    cargo(&["fmt", "--all"], false)?;
    golden_tests(true)?;
    println!("done; `git diff` shows what moved");
    Ok(())
}

fn golden_tests(update: bool) -> anyhow::Result<()> {
    let mut args = vec!["test", "--locked"];
    args.extend(GOLDEN_CRATES.iter().flat_map(|name| ["-p", name]));
    cargo(&args, update)
}

fn cargo(args: &[&str], update: bool) -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.args(args).current_dir(root());
    if update {
        command.env(UPDATE, "1");
    } else {
        command.env_remove(UPDATE);
    }
    let line = format!("cargo {}", args.join(" "));
    println!("{line}");
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// The root of the checkout, where this crate was built.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
