//! Drafts: who must agree to one, what is said of it, and when it is decided.

use nexus_tests::call::Speaker;
use nexus_tests::process::{Node, text};
use serde_json::{Value, json};

use super::{call, codex, draft, history, instance, join, of, refused, say, shown, stance, start};

/// A meeting with three members that must agree, and a node that serves it.
struct Table {
    node: Node,
    meeting: String,
    a: Speaker,
    b: Speaker,
    c: Speaker,
}

impl Table {
    async fn new() -> Self {
        let node = Node::found("sole").await;
        let (a, b, c) = (codex("a"), codex("b"), codex("c"));
        let meeting = start(&node, &a, "plan").await;
        for by in [&b, &c] {
            join(&node, by, &meeting).await;
        }
        Self { node, meeting, a, b, c }
    }

    async fn draft(&self, by: &Speaker, words: &str) -> u64 {
        draft(&self.node, by, &self.meeting, words).await
    }

    async fn stance(&self, by: &Speaker, number: u64, opinion: &str) -> Value {
        stance(&self.node, by, &self.meeting, number, opinion).await
    }

    async fn join(&self, by: &Speaker, args: Value) {
        let mut args = args;
        args["meetingId"] = json!(self.meeting);
        call(&self.node, by, "join_meeting", args).await;
    }

    async fn shown(&self) -> Value {
        shown(&self.node, &self.meeting).await
    }

    /// Returns how the current draft stands: version, required, endorsed, waiting.
    async fn standing(&self) -> Value {
        let proposal = &self.shown().await["proposal"];
        let fields = ["approversVersion", "required", "endorsed", "waiting"];
        fields.into_iter().map(|field| proposal[field].clone()).collect()
    }

    /// Returns the last message: who it is from, its category and its text.
    async fn last(&self) -> [String; 3] {
        let all = history(&self.node, &self.meeting).await;
        let last = all.last().unwrap();
        [text(&last["from"]), text(&last["category"]), text(&last["text"])]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_who_are_required_endorse_and_it_is_decided() {
    let table = Table::new().await;
    let Table { node, meeting, a, b, c } = &table;
    let args = json!({"message": "So be it: ü", "draft": true, "category": "PROPOSAL"});
    let sent = call(node, a, "send_message", args).await;
    let words = format!(
        "Message 1 is the current draft of meeting {meeting}: each required approver, you too if \
         you are one, now takes a stance on it (stance)."
    );
    let expected = json!({
        "ok": true, "sentTo": "meeting", "meetingId": meeting, "messageId": 1,
        "identity": "session", "currentProposalId": 1, "message": words,
    });
    assert_eq!(sent, expected);
    let proposal = json!({
        "messageId": 1, "author": "codex:a", "approversVersion": 1,
        "required": of(&[a, b, c]), "endorsed": [], "waiting": of(&[a, b, c]), "objections": [],
    });
    assert_eq!(table.shown().await["proposal"], proposal);
    // The author too must say so.
    for (by, waiting) in [(b, of(&[a, c])), (a, of(&[c]))] {
        let said = table.stance(by, 1, "endorse").await;
        assert_eq!((&said["decided"], said.get("decisionId")), (&json!(false), None), "{said}");
        assert_eq!(said["approvals"]["waiting"], waiting);
    }
    let args = json!({
        "meetingId": meeting, "messageId": 1, "stance": "endorse", "note": "if it rains",
    });
    let last = call(node, c, "stance", args).await;
    let expected = json!({
        "ok": true, "meetingId": meeting, "messageId": 1, "stance": "endorse",
        "currentProposalId": 1, "counted": true, "decided": true, "decisionId": 2,
        "approvals": {
            "required": of(&[a, b, c]), "endorsed": of(&[a, b, c]), "waiting": [],
            "objections": [], "reservations": [{"id": "codex:c", "note": "if it rains"}],
        },
    });
    assert_eq!(last, expected);
    let ended = table.shown().await;
    assert_eq!((&ended["status"], &ended["endReason"]), (&json!("closed"), &json!("consensus")));
    assert_eq!((&ended["decisionCount"], &ended["messageCount"]), (&json!(1), &json!(2)));
    assert_eq!(ended["participants"], of(&[a]));
    assert_eq!(ended["proposal"]["endorsed"], of(&[a, b, c]));
    assert_eq!(table.last().await, ["n2n-nexus", "DECISION", "So be it: ü"]);
    let list = call(node, a, "list_meetings", json!({})).await;
    assert_eq!(list["activeMeetingId"], Value::Null);

    // Taken up again it has neither end nor draft; what was said of the old one stays.
    call(node, b, "reopen_meeting", json!({"meetingId": meeting})).await;
    let open = table.shown().await;
    assert_eq!((&open["endReason"], &open["proposal"]), (&Value::Null, &Value::Null));
    let old = table.stance(c, 1, "withdraw").await;
    assert_eq!((&old["currentProposalId"], &old["decided"]), (&Value::Null, &json!(false)));
    assert_eq!(old["approvals"]["endorsed"], of(&[a, b]));
    let old = table.stance(c, 1, "endorse").await;
    assert_eq!(old["approvals"]["endorsed"], of(&[a, b, c]));
    assert_eq!(
        (&old["decided"], &table.shown().await["status"]),
        (&json!(false), &json!("active"))
    );
    assert_eq!(table.draft(a, "again").await, 3);
    assert_eq!(table.standing().await, json!([1, of(&[a, b, c]), [], of(&[a, b, c])]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_has_one_stance_and_an_objection_blocks() {
    let table = Table::new().await;
    let Table { node, meeting, a, b, c } = &table;
    let name = async |by: &Speaker| {
        let members = table.shown().await["members"].clone();
        let mut own = members.as_array().unwrap().iter().filter(|it| it["id"] == by.id());
        text(&own.next().unwrap()["name"])
    };
    let number = table.draft(a, "one").await;
    for (opinion, endorsed, waiting) in [
        ("endorse", of(&[b]), of(&[a, c])),
        ("withdraw", of(&[]), of(&[a, b, c])),
        ("endorse", of(&[b]), of(&[a, c])),
        ("object", of(&[]), of(&[a, c])),
    ] {
        let approvals = table.stance(b, number, opinion).await["approvals"].clone();
        assert_eq!((&approvals["endorsed"], &approvals["waiting"]), (&endorsed, &waiting));
        let objections = if opinion == "object" {
            json!([{"id": "codex:b", "note": "too soon"}])
        } else {
            json!([])
        };
        assert_eq!(approvals["objections"], objections, "{opinion}");
    }
    // It is posted with its reason, and by whom; one's own doing is no news to oneself.
    let told = format!("{} (codex:b) objects to #{number}: too soon", name(b).await);
    assert_eq!(table.last().await, ["n2n-nexus".to_owned(), "UPDATE".to_owned(), told]);
    assert_eq!(super::unread(node, b, meeting).await, ["one"]);
    for by in [a, c] {
        assert_eq!(table.stance(by, number, "endorse").await["decided"], false);
    }
    assert_eq!(table.shown().await["status"], "active");
    // Who is against it can be won over, and that was the last that was missing.
    let won = table.stance(b, number, "endorse").await;
    assert_eq!((&won["decided"], &won["decisionId"]), (&json!(true), &json!(3)), "{won}");

    let (code, said) = {
        call(node, a, "reopen_meeting", json!({"meetingId": meeting})).await;
        let args = json!({"meetingId": meeting, "messageId": number, "stance": "object"});
        refused(node, b, "stance", args).await
    };
    assert_eq!(code, "invalid_arguments");
    assert!(said.contains("note: is missing; give the reason"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_object_and_never_approve() {
    let table = Table::new().await;
    let Table { node, meeting, a, b, c } = &table;
    let tool = instance("tool");
    let joined = join(node, &tool, meeting).await;
    assert_eq!(joined["approver"], "required");
    let number = table.draft(a, "one").await;
    assert_eq!(table.standing().await, json!([1, of(&[a, b, c]), [], of(&[a, b, c])]));
    let said = table.stance(&tool, number, "endorse").await;
    assert_eq!((&said["counted"], &said["approvals"]["endorsed"]), (&json!(false), &json!([])));
    table.stance(&tool, number, "object").await;
    for by in [a, b, c] {
        assert_eq!(table.stance(by, number, "endorse").await["decided"], false);
    }
    let standing = table.shown().await["proposal"].clone();
    assert_eq!(standing["objections"], json!([{"id": "tool", "note": "too soon"}]));
    assert_eq!((&standing["waiting"], &standing["endorsed"]), (&json!([]), &of(&[a, b, c])));
    // Its word stood in the way alone.
    let said = table.stance(&tool, number, "withdraw").await;
    assert_eq!((&said["counted"], &said["decided"]), (&json!(false), &json!(true)), "{said}");
    assert_eq!(table.shown().await["endReason"], "consensus");
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_than_two_who_are_required_agree_on_nothing() {
    let node = Node::found("sole").await;
    let (a, tool) = (codex("a"), instance("tool"));
    let meeting = start(&node, &a, "plan").await;
    join(&node, &tool, &meeting).await;
    let number = draft(&node, &a, &meeting, "one").await;
    let said = stance(&node, &a, &meeting, number, "endorse").await;
    assert_eq!((&said["decided"], &said["approvals"]["waiting"]), (&json!(false), &json!([])));
    stance(&node, &tool, &meeting, number, "endorse").await;
    let ended = call(&node, &a, "end_meeting", json!({})).await;
    assert_eq!((&ended["status"], ended.get("summary")), (&json!("closed"), None));
    let meeting = shown(&node, &meeting).await;
    assert_eq!((&meeting["endReason"], &meeting["decisionCount"]), (&json!("manual"), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_draft_is_the_latest_and_a_plain_proposal_changes_nothing() {
    let table = Table::new().await;
    let Table { node, meeting, a, b, c } = &table;
    let one = table.draft(a, "one").await;
    table.stance(b, one, "endorse").await;
    let args = json!({"message": "or this", "meetingId": meeting, "category": "PROPOSAL"});
    let sent = call(node, c, "send_message", args).await;
    assert_eq!((&sent["messageId"], sent.get("currentProposalId")), (&json!(2), None));
    assert_eq!(table.shown().await["proposal"]["messageId"], one);
    assert_eq!(table.standing().await, json!([1, of(&[a, b, c]), of(&[b]), of(&[a, c])]));
    // Anybody may say what it thinks of it; that decides nothing.
    for by in [a, b, c] {
        let said = table.stance(by, 2, "endorse").await;
        assert_eq!((&said["currentProposalId"], &said["decided"]), (&json!(one), &json!(false)));
        assert_eq!(said["counted"], true);
    }
    let two = table.draft(b, "two").await;
    let proposal = table.shown().await["proposal"].clone();
    assert_eq!((&proposal["messageId"], &proposal["author"]), (&json!(two), &json!("codex:b")));
    assert_eq!(table.standing().await, json!([1, of(&[a, b, c]), [], of(&[a, b, c])]));
    let old = table.stance(a, one, "endorse").await;
    assert_eq!((&old["messageId"], &old["currentProposalId"]), (&json!(one), &json!(two)));
    assert_eq!(old["decided"], false);
    let (code, said) = {
        let number = say(node, a, meeting, "just talk").await;
        let args = json!({"meetingId": meeting, "messageId": number, "stance": "endorse"});
        refused(node, a, "stance", args).await
    };
    assert_eq!(code, "conflict");
    assert!(said.starts_with("messageId: message 4 is no PROPOSAL"), "{said}");
    // What somebody calls a decision is counted as one, and closes nothing.
    let args = json!({"message": "so be it", "meetingId": meeting, "category": "DECISION"});
    call(node, a, "send_message", args).await;
    let meeting = table.shown().await;
    assert_eq!((&meeting["decisionCount"], &meeting["status"]), (&json!(1), &json!("active")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_approvers_changes_where_somebody_leaves_or_changes_its_part() {
    let table = Table::new().await;
    let Table { node, meeting, a, b, c } = &table;
    let name = |at: usize| {
        let members = &table;
        async move { text(&members.shown().await["members"][at]["name"]) }
    };
    let names = [name(0).await, name(1).await, name(2).await];
    let full = |at: usize| format!("{} (codex:{})", names[at], ["a", "b", "c"][at]);
    let number = table.draft(a, "one").await;
    let told = async |change: &str, version: u64, required: &[usize]| {
        let required: Vec<String> = required.iter().map(|at| full(*at)).collect();
        let required = required.join(", ");
        let expected =
            format!("{change}. Approvers of draft #{number}, version {version}: {required}.");
        assert_eq!(table.last().await, ["n2n-nexus".to_owned(), "UPDATE".to_owned(), expected]);
    };
    // Who joins later is never asked about it, whatever it says.
    let late = codex("late");
    for approver in ["required", "optional", "required"] {
        table.join(&late, json!({"approver": approver})).await;
        assert_eq!(table.standing().await, json!([1, of(&[a, b, c]), [], of(&[a, b, c])]));
    }
    // Who joined before may go and come back.
    table.join(c, json!({"approver": "optional"})).await;
    assert_eq!(table.standing().await, json!([2, of(&[a, b]), [], of(&[a, b])]));
    told(&format!("{} is optional now", full(2)), 2, &[0, 1]).await;
    table.join(c, json!({"approver": "required", "mode": "async"})).await;
    assert_eq!(table.standing().await, json!([3, of(&[a, b, c]), [], of(&[a, b, c])]));
    told(&format!("{} is required now", full(2)), 3, &[0, 1, 2]).await;
    // Only the mode: nothing changes, nothing is posted.
    table.join(c, json!({"approver": "required"})).await;
    assert_eq!(table.shown().await["messageCount"], 3);
    call(node, b, "leave_meeting", json!({"meetingId": meeting})).await;
    assert_eq!(table.standing().await, json!([4, of(&[a, c]), [], of(&[a, c])]));
    told(&format!("{} left", full(1)), 4, &[0, 2]).await;
    // Who left and joins again has joined later.
    join(node, b, meeting).await;
    assert_eq!(table.standing().await, json!([4, of(&[a, c]), [], of(&[a, c])]));
    assert_eq!(table.shown().await["messageCount"], 4);
    // Who is on no list can object all the same, and takes that back.
    table.stance(&late, number, "object").await;
    table.stance(a, number, "endorse").await;
    assert_eq!(table.stance(c, number, "endorse").await["decided"], false);
    assert_eq!(table.stance(&late, number, "withdraw").await["decided"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_may_complete_the_set() {
    let table = Table::new().await;
    let Table { node, meeting, a, b, c } = &table;
    let number = table.draft(a, "one").await;
    for by in [a, b] {
        table.stance(by, number, "endorse").await;
    }
    call(node, c, "leave_meeting", json!({"meetingId": meeting})).await;
    let ended = table.shown().await;
    assert_eq!((&ended["status"], &ended["endReason"]), (&json!("closed"), &json!("consensus")));
    assert_eq!(table.last().await, ["n2n-nexus", "DECISION", "one"]);
    let again = json!([2, of(&[a, b]), of(&[a, b]), []]);
    assert_eq!(table.standing().await, again);
    // It has ended, and who is still in it may leave it.
    call(node, b, "leave_meeting", json!({"meetingId": meeting})).await;
    assert_eq!(table.shown().await["members"].as_array().unwrap().len(), 1);
}
