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
        "nexus node remove desk --force",
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
        "nexus node remove",
        "nexus call",
    ] {
        let error = parse(line).expect_err(line);
        assert!(error.use_stderr(), "{line}");
    }
}

#[test]
fn values_that_do_not_fit_say_what_is_right() {
    for (line, right) in [
        ("nexus status --wait soon", "'--wait <INDEX>': give a whole number, 0 or more"),
        ("nexus status --wait -1", "'--wait <INDEX>': give a whole number, 0 or more"),
        ("nexus bench --rounds -1", "'--rounds <N>': give a whole number"),
        ("nexus bench --seconds 1.5", "'--seconds <S>': give a whole number"),
        ("nexus bench --messages x", "'--messages <N>': give a whole number"),
        ("nexus bench --idle -7", "'--idle <S>': give a whole number"),
        ("nexus invite --ttl -1", "'--ttl <TTL>': give a number with s, m, h or d behind it"),
        ("nexus up --name=", "'--name <NAME>': give 1 to 48 characters out of A-Z a-z 0-9"),
        ("nexus up --name a/b", "give 1 to 48 characters out of"),
        ("nexus up --http localhost", "give ADDRESS:PORT in digits, such as 127.0.0.1:5688"),
        ("nexus up --cluster 5689", "give ADDRESS:PORT in digits, such as 192.168.1.5:5689"),
        ("nexus up --cluster 224.0.0.1:5689", "it names no single machine: give an address"),
        ("nexus up --seed a:b:c", "it should be HOST, HOST:PORT or [IPV6]:PORT"),
        ("nexus mcp --id a:b", "'--id <ID>': has a : in it, which only conversations have; give 1"),
        ("nexus mcp --id=", "'--id <ID>': is empty; give 1 to 200 of"),
        ("nexus invite --ttl 1000000d", "'--ttl <TTL>': give 30d or less"),
        ("nexus mcp --id a/b", "'--id <ID>': has '/' in it; give 1 to 200 of A-Z a-z 0-9"),
        ("nexus call x {} --instance=", "'--instance <ID>': is empty; give 1 to 200 of"),
        ("nexus call x {} --request-id=", "'--request-id <ID>': is empty; give 1 to 200 bytes"),
        ("nexus peers --endpoint https://x", "'--endpoint <URL>': "),
        ("nexus status --endpoint a/b", "give http://ADDRESS:PORT"),
    ] {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(right), "{line}: {error}");
        for word in ["u64", "usize", "invalid digit", "socket address syntax"] {
            assert!(!error.contains(word), "{line}: {error}");
        }
    }
    // An empty variable of the environment is none.
    assert!(parse("nexus mcp --endpoint=").is_ok());
}

#[test]
fn advice_follows_only_what_gives_none_itself() {
    let bare = |code, message: &str| out::is_bare(&ApiError::new(code, message));
    assert!(bare(ErrorCode::NotFound, "invite zzz: does not exist"));
    assert!(bare(ErrorCode::Conflict, "name: is taken"));
    assert!(!bare(ErrorCode::Conflict, "node 1: is the only voter; bring a third in first"));
    assert!(!bare(ErrorCode::NotFound, "member \"x\" does not exist; the members are desk"));
    assert!(!out::is_bare(&ApiError::invalid_arguments("peers", "x: is 1; give true or false")));
    assert!(!out::is_bare(&ApiError::unknown_tool("x")));
}

#[test]
fn a_stale_answer_is_told_in_one_sentence_with_or_without_a_time() {
    let time = "2026-12-01T04:00:00.007Z";
    let local = out::local_text(time);
    assert_ne!(local, time);
    assert_eq!(out::knew(Some(time)), format!("this is what this node knew at {local}"));
    let words = "not known since this node's start; its last entry is of";
    assert_eq!(
        out::knew(Some(&format!("{words} {time}"))),
        format!("this is the last that this node knows, and its age is {words} {local}")
    );
    let bare = "this is the last that this node knows, and its age is not known";
    assert_eq!(out::knew(None), bare);
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
