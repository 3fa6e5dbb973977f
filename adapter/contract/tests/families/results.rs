//! Results of each tool, as its type makes them: with everything and with as little as there can
//! be. They fit what is checked and what is listed, and come back as they were.

mod meetings;
mod work;

use std::collections::BTreeSet;
use std::fmt::Debug;

use nexus_contract::chat::{
    Category, Identity, Message, ReadMessages, ReadMessagesOutput, ReadMode, Room, SendMessage,
    SendMessageOutput,
};
use nexus_contract::conversations::{
    ClientKind, Listen, ListenOutput, Peers, PeersOutput, Profile, SetProfile, SetProfileOutput,
    Status,
};
use nexus_contract::events::{Event, ListEvents, ListEventsOutput};
use nexus_contract::mail::{
    Letter, Read, ReadOutput, Receipt, Recipient, Reply, Send, Sender, SentOutput,
};
use nexus_contract::maintenance::{HostMaintenance, HostMaintenanceOutput};
use nexus_contract::tool::Tool;
use nexus_contract::{ReadMarks, catalog, validate};
use serde_json::{Map, Value};

use crate::spec;

const TIME: &str = "2026-12-01T03:05:00.000Z";

/// What was tried, so that no tool and no field is forgotten.
#[derive(Default)]
struct Tried {
    fields: BTreeSet<(String, String)>,
}

impl Tried {
    /// Tries results of a tool.
    fn fit<T: Tool>(&mut self, outputs: Vec<T::Output>)
    where
        T::Output: PartialEq + Debug,
    {
        for output in outputs {
            self.fit_one::<T>(&output);
        }
    }

    fn fit_one<T: Tool>(&mut self, output: &T::Output)
    where
        T::Output: PartialEq + Debug,
    {
        let spec = spec(T::NAME);
        let mut listed = spec.clone();
        listed.output_schema = spec.listed_output().unwrap_or_default();
        let marks = ReadMarks {
            stale: Some(true),
            as_of: Some(TIME.into()),
            cursor_moved: Some(false),
            missing_your_write: Some(true),
            applied_here: Some(false),
        };
        for marks in [ReadMarks::default(), marks] {
            let result = Value::Object(marks.stamp(output).unwrap());
            for spec in [spec, &listed] {
                validate::result(spec, &result)
                    .unwrap_or_else(|found| panic!("{}: {found:?} in {result}", T::NAME));
            }
            let back: T::Output = serde_json::from_value(result.clone()).unwrap();
            assert_eq!(back, *output, "{}", T::NAME);
            if marks == ReadMarks::default() {
                self.note(T::NAME, &spec.output_schema, &result);
            }
        }
        let whole = Value::Object(ReadMarks::default().stamp(output).unwrap());
        for key in spec.output_schema.get("required").and_then(Value::as_array).unwrap() {
            let key = key.as_str().unwrap();
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(key);
            let found = validate::result(spec, &less).unwrap_err();
            assert!(found.iter().any(|violation| violation.field == key), "{}.{key}", T::NAME);
        }
    }

    /// Notes which fields of a schema a value gives, to any depth.
    fn note(&mut self, path: &str, schema: &Map<String, Value>, value: &Value) {
        self.fields.insert((path.to_owned(), String::new()));
        for (key, schema) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if let Some(value) = value.get(key).filter(|value| !value.is_null()) {
                self.fields.insert((path.to_owned(), key.clone()));
                self.note(&format!("{path}.{key}"), schema.as_object().unwrap(), value);
            }
        }
        if let (Some(Value::Object(items)), Some(values)) = (schema.get("items"), value.as_array())
        {
            values.iter().for_each(|value| self.note(&format!("{path}[]"), items, value));
        }
        for choice in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.note(path, choice.as_object().unwrap(), value);
        }
    }

    /// Fails for a field of a schema that no result gave.
    fn is_complete(&self, path: &str, schema: &Map<String, Value>) {
        for (key, schema) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let known = self.fields.contains(&(path.to_owned(), key.clone()));
            assert!(known, "no result gives {path}.{key}");
            self.is_complete(&format!("{path}.{key}"), schema.as_object().unwrap());
        }
        if let Some(Value::Object(items)) = schema.get("items") {
            self.is_complete(&format!("{path}[]"), items);
        }
        for choice in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.is_complete(path, choice.as_object().unwrap());
        }
    }
}

#[test]
fn results_fit_what_is_checked_and_what_is_listed() {
    let mut tried = Tried::default();
    conversations(&mut tried);
    mail(&mut tried);
    chat(&mut tried);
    meetings::lists(&mut tried);
    meetings::acts(&mut tried);
    work::tasks(&mut tried);
    work::projects(&mut tried);
    work::topology(&mut tried);
    work::documents(&mut tried);
    let event = Event {
        timestamp: TIME.into(),
        actor: "desk".into(),
        action: "node.join".into(),
        target: Some("lap".into()),
        detail: Some("as learner".into()),
    };
    let bare = Event { target: None, detail: None, ..event.clone() };
    tried.fit::<ListEvents>(vec![ListEventsOutput { count: 2, events: vec![event, bare] }]);
    tried.fit::<HostMaintenance>(vec![HostMaintenanceOutput {
        ok: true,
        removed: 3,
        remaining: 0,
    }]);
    for spec in catalog::whole() {
        let some = tried.fields.iter().any(|(path, _)| path == spec.name);
        assert!(some, "no result of {}", spec.name);
        tried.is_complete(spec.name, &spec.output_schema);
    }
}

fn profile() -> Profile {
    Profile {
        id: "codex:1".into(),
        name: "codex@app".into(),
        title: String::new(),
        client: ClientKind::Codex,
        node: "desk".into(),
        cwd: "/src/app".into(),
        note: String::new(),
        status: Status::Asleep,
        last_active_at: TIME.into(),
        unread: None,
        listening: None,
    }
}

fn conversations(tried: &mut Tried) {
    let own = Profile { unread: Some(0), listening: Some(true), ..profile() };
    tried.fit::<Peers>(vec![
        PeersOutput { own: None, peers: vec![], more: false },
        PeersOutput { own: Some(own.clone()), peers: vec![profile(), own.clone()], more: true },
    ]);
    tried.fit::<SetProfile>(vec![SetProfileOutput { profile: own }]);
    tried.fit::<Listen>(vec![ListenOutput { listening: true }]);
}

fn mail(tried: &mut Tried) {
    let to = Recipient { id: "codex:1".into(), name: "codex@app".into(), status: Status::Idle };
    let sent = SentOutput { message_id: "12".into(), to, state: Receipt::Accepted };
    tried.fit::<Send>(vec![sent.clone()]);
    tried.fit::<Reply>(vec![sent]);
    let letter = Letter {
        message_id: "12".into(),
        from: Sender { id: "claude:0a".into(), name: "claude@app".into() },
        reply_to: None,
        text: "two\nlines".into(),
        created_at: TIME.into(),
        expects_reply: true,
        again: false,
        earlier: false,
    };
    let odd = Letter { reply_to: Some("7".into()), again: true, earlier: true, ..letter.clone() };
    tried.fit::<Read>(vec![
        ReadOutput { messages: vec![], remaining: 0 },
        ReadOutput { messages: vec![letter, odd], remaining: 9 },
    ]);
}

fn chat(tried: &mut Tried) {
    let sent = SendMessageOutput {
        ok: true,
        sent_to: Room::Global,
        meeting_id: None,
        message_id: 5,
        identity: Identity::Instance,
        current_proposal_id: None,
        message: "posted".into(),
    };
    let draft = SendMessageOutput {
        sent_to: Room::Meeting,
        meeting_id: Some("m".into()),
        current_proposal_id: Some(5),
        ..sent.clone()
    };
    tried.fit::<SendMessage>(vec![sent, draft]);
    let message = Message {
        id: 4,
        from: "mcp-desk".into(),
        sender_name: None,
        text: "hello".into(),
        category: None,
        timestamp: TIME.into(),
        again: false,
    };
    let other = Message {
        sender_name: Some("codex@app".into()),
        category: Some(Category::MeetingStart),
        again: true,
        ..message.clone()
    };
    let bare = ReadMessagesOutput {
        source: Room::Global,
        mode: ReadMode::History,
        identity: None,
        meeting_id: None,
        messages: vec![],
        count: 0,
        note: None,
    };
    let full = ReadMessagesOutput {
        source: Room::Meeting,
        mode: ReadMode::Unread,
        identity: Some(Identity::Session),
        meeting_id: Some("m".into()),
        messages: vec![message, other],
        count: 2,
        note: Some("older ones: latest".into()),
    };
    tried.fit::<ReadMessages>(vec![bare, full]);
}
