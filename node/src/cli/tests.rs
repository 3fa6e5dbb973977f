//! The command line's shape, and what ends mean for the shell.

use super::*;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(line.split_whitespace())
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_documented_form_is_read() {
    for line in [
        "nexus up",
        "nexus up --data /x --name desk --http 127.0.0.1:0 --cluster 127.0.0.1:0 --no-mdns",
        "nexus up --join CODE --seed 10.0.0.1:5689 --seed desk --discard --log json",
        "nexus up --new",
        "nexus down --data /x",
        "nexus invite",
        "nexus invite --voter --ttl 15m --json",
        "nexus invite --learner",
        "nexus invite list --json",
        "nexus invite withdraw abc --data /x",
        "nexus status",
        "nexus status --json --digest --wait 7",
        "nexus node remove desk --json",
        "nexus peers --all --json",
        "nexus call list_events",
        "nexus call send_message {} --instance me --request-id r --json",
        "nexus call send_message -",
        "nexus mcp --id me",
        "nexus lan off",
        "nexus bench --clients 1,64 --rounds 1 --messages 0 --json",
        "nexus version --json",
        "nexus completions bash",
    ] {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn what_excludes_each_other_is_refused() {
    for line in [
        "nexus",
        "nexus nothing",
        "nexus up --http localhost",
        "nexus up --seed a:b:c",
        "nexus up --discard",
        "nexus up --join CODE --new",
        "nexus invite --voter --learner",
        "nexus invite --ttl soon",
        "nexus status --wait soon",
        "nexus node remove",
        "nexus call",
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.use_stderr(), "{line}");
    }
}

#[test]
fn codes_decide_the_exit_code() {
    let exit = |code| Exit::of(code);
    assert_eq!(exit(ErrorCode::NodeUnreachable), Exit::NotReachable);
    assert_eq!(exit(ErrorCode::NoQuorum), Exit::Unavailable);
    assert_eq!(exit(ErrorCode::UnknownOutcome), Exit::Unavailable);
    for code in [ErrorCode::NotFound, ErrorCode::Unauthorized, ErrorCode::Internal] {
        assert_eq!(exit(code), Exit::Failed);
    }
}

#[test]
fn a_name_is_one_segment_of_a_path() {
    assert_eq!(percent_encoded("desk-2"), "desk-2");
    assert_eq!(percent_encoded("a/b c#@ü"), "a%2Fb%20c%23%40%C3%BC");
}
