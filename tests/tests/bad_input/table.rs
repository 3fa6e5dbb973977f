//! One table a tool of what it must refuse, held on every node alike.
//!
//! # How to use it
//!
//! A family of tools is a file beside this one, such as `tasks.rs`, with
//!
//! 1. `TOOLS`: the names of its tools. `main.rs` has a test that every served tool is in the list
//!    of some family; add the new list there;
//! 2. one test, which starts a [`Stage`], makes the things that its rows need (a finished task, an
//!    ended meeting) by [`Stage::call`], and gives [`Stage::hold`] a [`Table`] for each tool.
//!
//! ```ignore
//! let mut stage = Stage::new().await;
//! let made = stage.call("create_task", json!({})).await;
//! let own = [
//!     Table::of("get_task").row("a task that is not there", json!({"taskId": "99"}), NotFound,
//!         &["taskId: task 99", "list_tasks"]),
//! ];
//! stage.hold(TOOLS, own).await;
//! ```
//!
//! What a schema says needs no row: a table begins with every wrong call that
//! `nexus_contract::testing` makes of the tool's right calls, which are those of `testing/calls.rs`
//! there: each field missing, null, of every other type, too long, out of range, no such word, not
//! ASCII, with control characters, with `/ \ & ? %` where an id stands. A tool that writes is
//! called by nobody too. So a family's rows are the rules beyond: two fields that exclude each
//! other, ids that name nothing (`..` and `#` among them), and the wrong state.
//!
//! # What is held
//!
//! Every call is made on the leader, a follower and a learner, by a caller of that node's own; each
//! gives the same status, code and text; the text begins or goes on as the row says, and holds no
//! path of this machine and no word of a programming language. Afterwards each node holds what it
//! held: the digest of the content is the same.

use std::collections::BTreeSet;

use nexus_contract::testing::{self, Wrong};
use nexus_contract::{ErrorCode, ToolSpec, catalog, limits};
use nexus_tests::call::{Failed, Speaker};
use nexus_tests::process::{LIMIT, Node, agree, every_role};
use serde_json::{Value, json};

/// Words that a text for people and models never has: they are of our language, or our machine's.
const FOREIGN: [&str; 9] =
    ["struct ", "enum ", "variant", "u64", "expected a ", "Some(", "/root", "/home", "/tmp"];

/// How often a body that is too long is sent again when its answer was missed.
const TRIES_OF_LONG: usize = 10;

/// What one tool must refuse.
#[derive(Debug)]
pub(crate) struct Table {
    spec: &'static ToolSpec,
    is_spoken: bool,
    needs_caller: bool,
    rows: Vec<Row>,
}

/// One call that must be refused.
#[derive(Debug)]
struct Row {
    what: String,
    args: Value,
    /// By nobody, and not by the node's own caller.
    by_nobody: bool,
    code: ErrorCode,
    words: Vec<String>,
}

impl Table {
    /// Begins the table of a tool.
    pub(crate) fn of(tool: &str) -> Self {
        let spec = catalog::find(tool).unwrap_or_else(|| panic!("{tool} is not served"));
        Self { spec, is_spoken: false, needs_caller: !spec.hints.read_only, rows: Vec::new() }
    }

    /// Calls the tool as a conversation: it is not for instances.
    pub(crate) fn spoken(self) -> Self {
        Self { is_spoken: true, needs_caller: true, ..self }
    }

    /// Lets the tool be called by nobody, though it writes: its right calls need no caller.
    pub(crate) fn open(self) -> Self {
        Self { needs_caller: false, ..self }
    }

    /// Adds a call that must be refused with this code, and all of these words.
    pub(crate) fn row(self, what: &str, args: Value, code: ErrorCode, words: &[&str]) -> Self {
        self.add(what, args, false, code, words)
    }

    /// As [`Self::row`], for many values of one field that are wrong alike.
    pub(crate) fn rows<const N: usize>(
        mut self,
        field: &str,
        values: [&str; N],
        others: &Value,
        code: ErrorCode,
        words: &[&str],
    ) -> Self {
        for value in values {
            let mut args = others.clone();
            args[field] = value.into();
            self = self.row(&format!("{field} {value:?}"), args, code, words);
        }
        self
    }

    fn add(
        mut self,
        what: &str,
        args: Value,
        by_nobody: bool,
        code: ErrorCode,
        words: &[&str],
    ) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        self.rows.push(Row { what: what.to_owned(), args, by_nobody, code, words });
        self
    }

    /// Puts what the schema says before what the family says.
    fn whole(mut self) -> Self {
        let own = std::mem::take(&mut self.rows);
        let rights = testing::calls().into_iter().filter(|(tool, _)| *tool == self.spec.name);
        let rights: Vec<Value> = rights.map(|(_, arguments)| arguments).collect();
        assert!(!rights.is_empty(), "{} has no right call", self.spec.name);
        let begin = format!("Invalid arguments for {}: ", self.spec.name);
        for right in &rights {
            for Wrong { path, arguments, begins } in testing::wrong(self.spec, right) {
                let what = format!("{path}, so that it {begins}");
                let words = [format!("{begin}{begins}"), "; give ".to_owned()];
                let words = [words[0].as_str(), words[1].as_str()];
                self = self.add(&what, arguments, false, ErrorCode::InvalidArguments, &words);
            }
        }
        if self.needs_caller {
            let words: &[&str] = if self.is_spoken { &["session"] } else { &["instanceId"] };
            let code = ErrorCode::Unidentified;
            self = self.add("nobody", rights[0].clone(), true, code, words);
        }
        self.rows.extend(own);
        self
    }
}

/// Nodes of every role, and what they hold.
#[derive(Debug)]
pub(crate) struct Stage {
    nodes: [Node; 4],
    content: String,
}

impl Stage {
    /// Starts the nodes, and makes the callers known, one instance and one conversation a node.
    pub(crate) async fn new() -> Self {
        let nodes = every_role(["leader", "follower", "other", "learner"]).await;
        let stage = Self { nodes, content: String::new() };
        for place in 0..stage.nodes.len() {
            let (message, note) = (json!({"message": "here"}), json!({"note": "here"}));
            stage.call_at(place, &keeper(place, false), "send_message", message).await;
            stage.call_at(place, &keeper(place, true), "set_profile", note).await;
        }
        stage
    }

    /// Calls a tool on the leader, as the instance `maker`, to make what rows need.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Value {
        self.call_at(0, &Speaker::Instance("maker".to_owned()), tool, args).await
    }

    /// Calls a tool on the node of that place: the leader, two followers, the learner.
    pub(crate) async fn call_at(
        &self,
        place: usize,
        speaker: &Speaker,
        tool: &str,
        args: Value,
    ) -> Value {
        let answer = self.nodes[place].http().call_as(speaker, tool, args.clone(), None).await;
        answer.unwrap_or_else(|failed| panic!("{tool} {args}: {failed}"))
    }

    /// Holds a family's tools to their tables; there must be one for each.
    pub(crate) async fn hold(&mut self, tools: &[&str], tables: impl IntoIterator<Item = Table>) {
        let tables: Vec<Table> = tables.into_iter().map(Table::whole).collect();
        let held: BTreeSet<&str> = tables.iter().map(|table| table.spec.name).collect();
        assert_eq!(held, tools.iter().copied().collect(), "tables and tools are not the same");
        let all: Vec<&Node> = self.nodes.iter().collect();
        self.content = agree(&all, LIMIT).await;
        for table in &tables {
            for row in &table.rows {
                self.refuses(table, row).await;
            }
            self.is_intact(table.spec.name, "all rows").await;
            eprintln!("{}: {} calls refused, on each node", table.spec.name, table.rows.len());
        }
    }

    /// Makes one call everywhere, and compares the refusals.
    async fn refuses(&self, table: &Table, row: &Row) {
        let tool = table.spec.name;
        let mut first: Option<String> = None;
        for (place, node) in self.nodes.iter().enumerate() {
            let own = keeper(place, table.is_spoken);
            let by = if row.by_nobody { &Speaker::Nobody } else { &own };
            let told = format!("{tool} with {} on {}", row.what, node.name());
            let text = refusal(node, by, tool, row, &told).await.replace(&own.id(), "CALLER");
            let same = first.get_or_insert_with(|| text.clone());
            assert_eq!(*same, text, "{told} is refused in other words than before");
        }
        // What the log was asked for is looked at after each row, so that the row is named.
        if row.code != ErrorCode::InvalidArguments {
            self.is_intact(tool, &row.what).await;
        }
    }

    async fn is_intact(&self, tool: &str, what: &str) {
        for node in &self.nodes {
            let digest = node.http().get("/api/digest").await;
            let digest = digest.unwrap_or_else(|failed| panic!("{tool}, {what}: {failed}"));
            assert_eq!(
                digest["now"]["content"],
                self.content.as_str(),
                "{tool} with {what} changed something on {}: {}",
                node.name(),
                node.nexus(&["call", "list_events"]).await
            );
            assert!(!node.log().contains("panicked"), "{tool}, {what}: {}", node.log());
        }
    }
}

/// Returns the caller of a node's own: an actor has one home, and would move with each call.
pub(crate) fn keeper(place: usize, is_spoken: bool) -> Speaker {
    if is_spoken {
        Speaker::Codex(format!("keeper-{place}"))
    } else {
        Speaker::Instance(format!("keeper-{place}"))
    }
}

/// Makes one call and returns the text of its refusal, held to the row.
async fn refusal(node: &Node, by: &Speaker, tool: &str, row: &Row, told: &str) -> String {
    let body = by.body(tool, &row.args, None).to_string();
    // A text that is too long for a body ends there.
    let is_too_large = body.len() > limits::CALL_BYTES_MAX;
    let code = if is_too_large { ErrorCode::TooLarge } else { row.code };
    let http = node.http();
    let send = async || {
        let request = http.client().post(format!("{}/api/tools/call", http.url()));
        let request = request.bearer_auth(http.token()).header("content-type", "application/json");
        http.send(request.body(body.clone())).await
    };
    let mut answer = send().await;
    // A node that has read enough answers and closes: who still writes may miss its answer.
    for _ in 0..TRIES_OF_LONG {
        if is_too_large && matches!(answer, Err(Failed::Lost(_))) {
            answer = send().await;
        }
    }
    let Err(Failed::Refused { status, body }) = &answer else {
        panic!("{told} is not refused: {:.2000}", format!("{answer:?}"));
    };
    let expected = (code.status(), Some(code.as_str()), &json!(false));
    assert_eq!((*status, body["code"].as_str(), &body["ok"]), expected, "{told}: {body}");
    let text = body["error"].as_str().unwrap_or_default();
    for word in row.words.iter().filter(|_| !is_too_large) {
        assert!(text.contains(word), "{told}: {word:?} is not in {text:?}");
    }
    let data = node.data().display().to_string();
    for word in FOREIGN.into_iter().chain([data.as_str(), http.token().as_str()]) {
        assert!(!text.contains(word), "{told}: {word:?} is in {text:?}");
    }
    assert!(text.len() < 1_000, "{told}: {text:?}");
    text.to_owned()
}
