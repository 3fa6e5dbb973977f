//! `settings.json`: what the user set, and the two lines that nexus writes itself.
//!
//! Every key is checked by name, so that a slip of the pen is an error that shows the right
//! spelling, never a default that was silently kept.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use nexus_contract::catalog::Set;
use nexus_contract::json::{self, JsonError};
use nexus_domain::command::Timing;
use nexus_domain::limits;
use serde_json::{Map, Value};

use super::folder::{FolderError, advice as advice_for, write_whole};
use super::{Advertised, GivenSeed, LocalTrust, check_cluster, check_name};

/// Every key, in the order of the documentation.
const KEYS: &[&str] = &[
    "http",
    "cluster",
    "name",
    "hostId",
    "advertise",
    "allowedHosts",
    "localTrust",
    "lan",
    "clusterId",
    "mdns",
    "timing",
    "rateLimit",
    "rateBurst",
    "stanceReminderMinutes",
    "tools",
    "seeds",
];

/// Keys of n2n-nexus, whose folder this may have been, and what stands in their place.
const FORMER: &[(&str, &str)] = &[
    ("host", "use http, as in \"http\": \"127.0.0.1:5688\""),
    ("port", "use http, as in \"http\": \"127.0.0.1:5688\""),
    ("discoveryPort", "leave it out: nodes find each other by multicast DNS and seeds"),
    ("maxAutoTurns", "leave it out: this version starts no turns by itself"),
];

/// How alike a key must be to be taken for the one that was meant.
const NEAR: f64 = 0.75;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("settings {} cannot be read{}", path.display(), advice_for(source))]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("settings file {} {source}", path.display())]
    Malformed { path: PathBuf, source: JsonError },
    #[error("settings {} are not a JSON object: give {{\"key\": value, …}}", path.display())]
    NotAnObject { path: PathBuf },
    #[error("settings {}: {key:?} is not a setting: {advice}", path.display())]
    Unknown { path: PathBuf, key: String, advice: String },
    #[error("settings {}: {key} is {is}: {right}", path.display())]
    Wrong { path: PathBuf, key: String, is: String, right: String },
    #[error("settings cannot be written")]
    Write(#[source] FolderError),
}

/// What stands in `settings.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) http: Option<SocketAddr>,
    pub(crate) cluster: Option<SocketAddr>,
    pub(crate) name: Option<String>,
    pub(crate) host_id: Option<String>,
    pub(crate) advertise: Vec<Advertised>,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) local_trust: LocalTrust,
    pub(crate) lan: bool,
    pub(crate) cluster_id: Option<String>,
    pub(crate) mdns: bool,
    pub(crate) timing: Option<Timing>,
    pub(crate) rate_limit: Option<u32>,
    pub(crate) rate_burst: Option<u32>,
    pub(crate) stance_reminder_minutes: Option<u32>,
    pub(crate) tools: Set,
    pub(crate) seeds: Vec<GivenSeed>,
}

impl Settings {
    /// Reads the file; none is the same as an empty one.
    pub(crate) fn read(path: &Path) -> Result<Self, SettingsError> {
        Self::of(path, &read_object(path)?)
    }

    fn of(path: &Path, object: &Map<String, Value>) -> Result<Self, SettingsError> {
        if let Some(key) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let advice = advice(key);
            return Err(SettingsError::Unknown { path: path.into(), key: key.clone(), advice });
        }
        let keys = Keys { path, object };
        Ok(Self {
            http: keys.parsed("http", "\"ADDRESS:PORT\", such as \"127.0.0.1:5688\"")?,
            cluster: keys.cluster()?,
            name: keys.name()?,
            host_id: keys.host_id()?,
            advertise: keys.advertise()?,
            allowed_hosts: keys.allowed_hosts()?,
            local_trust: keys.local_trust()?,
            lan: keys.switch("lan")?.unwrap_or(false),
            cluster_id: keys.text("clusterId")?,
            mdns: keys.switch("mdns")?.unwrap_or(true),
            timing: keys.timing()?,
            rate_limit: keys.number(
                "rateLimit",
                0..=u32::MAX,
                "a whole number from 0 (no limit)",
            )?,
            rate_burst: keys.number("rateBurst", 1..=u32::MAX, "a whole number from 1")?,
            stance_reminder_minutes: keys.reminder()?,
            tools: keys.tools()?,
            seeds: keys.seeds()?,
        })
    }

    /// Writes keys into the file and leaves the others as they are.
    pub(crate) fn change(path: &Path, changes: &[(&str, Value)]) -> Result<(), SettingsError> {
        let before = read_object(path)?;
        let mut after = before.clone();
        for (key, value) in changes {
            if value.is_null() {
                after.remove(*key);
            } else {
                after.insert((*key).to_owned(), value.clone());
            }
        }
        if after == before {
            return Ok(());
        }
        let text = format!("{:#}\n", Value::Object(after));
        write_whole(path, text.as_bytes(), 0o644).map_err(SettingsError::Write)
    }
}

fn read_object(path: &Path) -> Result<Map<String, Value>, SettingsError> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(source) => return Err(SettingsError::Unreadable { path: path.into(), source }),
    };
    match json::read(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(SettingsError::NotAnObject { path: path.into() }),
        Err(source) => Err(SettingsError::Malformed { path: path.into(), source }),
    }
}

fn advice(key: &str) -> String {
    if let Some((_, advice)) = FORMER.iter().find(|(former, _)| *former == key) {
        return format!("it is one of n2n-nexus; {advice}");
    }
    let alike = |known: &&str| strsim::jaro_winkler(&known.to_lowercase(), &key.to_lowercase());
    let near = KEYS.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match near.filter(|near| alike(near) >= NEAR) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("the settings are {}", KEYS.join(", ")),
    }
}

/// Looks keys up and says what is wrong with them.
struct Keys<'a> {
    path: &'a Path,
    object: &'a Map<String, Value>,
}

impl Keys<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, value: &Value, right: &str) -> SettingsError {
        self.against(key, value, format!("give {right}"))
    }

    /// Says what is wrong with a key; `right` says what would be right, and why.
    fn against(&self, key: &str, value: &Value, right: impl Into<String>) -> SettingsError {
        let is = value.to_string().chars().take(80).collect();
        SettingsError::Wrong {
            path: self.path.into(),
            key: key.to_owned(),
            is,
            right: right.into(),
        }
    }

    fn cluster(&self) -> Result<Option<SocketAddr>, SettingsError> {
        let right = "\"ADDRESS:PORT\", such as \"192.168.1.5:5689\"";
        let given: Option<SocketAddr> = self.parsed("cluster", right)?;
        let Some(address) = given else { return Ok(None) };
        let shown = || Value::from(address.to_string());
        check_cluster(address).map_err(|right| self.against("cluster", &shown(), right))?;
        Ok(Some(address))
    }

    fn name(&self) -> Result<Option<String>, SettingsError> {
        let Some(name) = self.text("name")? else { return Ok(None) };
        let shown = || Value::from(name.as_str());
        check_name(&name).map_err(|right| self.against("name", &shown(), right))?;
        Ok(Some(name))
    }

    fn host_id(&self) -> Result<Option<String>, SettingsError> {
        let Some(id) = self.text("hostId")? else { return Ok(None) };
        if id.len() > limits::HOST_BYTES_MAX || id.contains(char::is_control) {
            let right =
                format!("give a text of one line of at most {} bytes", limits::HOST_BYTES_MAX);
            return Err(self.against("hostId", &Value::from(id), right));
        }
        Ok(Some(id))
    }

    /// Reads the names under which HTTP may be called: plain ones, since each of them is let in as
    /// it is written.
    fn allowed_hosts(&self) -> Result<Vec<String>, SettingsError> {
        const RIGHT: &str = "a list of host names without a port, such as [\"desk.lan\"]";
        let hosts = self.texts("allowedHosts", RIGHT)?;
        for (at, host) in hosts.iter().enumerate() {
            let key = format!("allowedHosts[{at}]");
            let shown = Value::from(host.as_str());
            if host.contains('*') {
                let right = format!(
                    "every name would be let in, and with it any web page that gives this machine \
                     a name (DNS rebinding), which the check keeps out; give {RIGHT}"
                );
                return Err(self.against(&key, &shown, right));
            }
            let is_label = |label: &str| {
                (1..=63).contains(&label.len())
                    && label.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it))
            };
            if host.parse::<IpAddr>().is_err() && !host.split('.').all(is_label) {
                return Err(self.wrong(&key, &shown, RIGHT));
            }
        }
        Ok(hosts)
    }

    fn seeds(&self) -> Result<Vec<GivenSeed>, SettingsError> {
        let texts = self.texts("seeds", "a list of \"HOST:PORT\"")?;
        let mut seeds = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let key = format!("seeds[{at}]");
            let seed = text.parse().map_err(|_what_is_wrong| {
                let right = "\"HOST\", \"HOST:PORT\" or \"[IPV6]:PORT\"";
                self.wrong(&key, &Value::from(text.as_str()), right)
            })?;
            seeds.push(GivenSeed { seed, field: format!("{key} of the settings") });
        }
        Ok(seeds)
    }

    fn parsed<T: std::str::FromStr>(
        &self,
        key: &str,
        right: &str,
    ) -> Result<Option<T>, SettingsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_str().and_then(|text| text.parse().ok()) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(self.wrong(key, value, right)),
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, SettingsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_str().filter(|text| !text.trim().is_empty()) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(self.wrong(key, value, "a text")),
        }
    }

    fn texts(&self, key: &str, right: &str) -> Result<Vec<String>, SettingsError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let texts = value.as_array().and_then(|items| {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| self.wrong(key, value, right))
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, SettingsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(key, value, "true or false"))
    }

    fn reminder(&self) -> Result<Option<u32>, SettingsError> {
        const MOST: u32 = limits::REMINDER_MINUTES_MAX;
        let right = format!("a whole number of minutes from 0 (no reminders) to {MOST}");
        self.number("stanceReminderMinutes", 0..=MOST, &right)
    }

    fn number(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
        right: &str,
    ) -> Result<Option<u32>, SettingsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(key, value, right)),
        }
    }

    fn local_trust(&self) -> Result<LocalTrust, SettingsError> {
        let Some(value) = self.get("localTrust") else { return Ok(LocalTrust::default()) };
        match value.as_str() {
            Some("open") => Ok(LocalTrust::Open),
            Some("token") => Ok(LocalTrust::Token),
            _ => Err(self.wrong("localTrust", value, "\"open\" or \"token\"")),
        }
    }

    fn tools(&self) -> Result<Set, SettingsError> {
        let Some(value) = self.get("tools") else { return Ok(Set::default()) };
        let set = value.as_str().and_then(Set::named);
        set.ok_or_else(|| self.wrong("tools", value, "\"all\" or \"core\""))
    }

    fn timing(&self) -> Result<Option<Timing>, SettingsError> {
        let Some(value) = self.get("timing") else { return Ok(None) };
        match value.as_str() {
            Some("wifi") => Ok(Some(Timing::Wifi)),
            Some("wired") => Ok(Some(Timing::Wired)),
            Some("relaxed") => Ok(Some(Timing::Relaxed)),
            Some("auto") => Ok(None),
            _ => Err(self.wrong("timing", value, "one of auto, wired, wifi, relaxed")),
        }
    }

    fn advertise(&self) -> Result<Vec<Advertised>, SettingsError> {
        const RIGHT: &str = "\"ADDRESS\" or \"ADDRESS:PORT\"";
        let texts = self.texts("advertise", "a list of \"ADDRESS\" or \"ADDRESS:PORT\"")?;
        let parse = |text: &String| {
            if let Ok(whole) = text.parse::<SocketAddr>() {
                return Some(Advertised { ip: whole.ip(), port: Some(whole.port()) });
            }
            text.parse::<IpAddr>().ok().map(|ip| Advertised { ip, port: None })
        };
        if texts.len() > limits::ADDRESSES_MAX {
            let right = format!("give at most {} of them", limits::ADDRESSES_MAX);
            return Err(self.against("advertise", &Value::from(texts), right));
        }
        let mut advertised = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let key = format!("advertise[{at}]");
            let shown = || Value::from(text.as_str());
            let parsed = parse(text).ok_or_else(|| self.wrong(&key, &shown(), RIGHT))?;
            if parsed.ip.is_unspecified() || parsed.ip.is_multicast() || parsed.port == Some(0) {
                let right = "nobody can be reached there; give an address of this machine";
                return Err(self.against(&key, &shown(), right));
            }
            advertised.push(parsed);
        }
        Ok(advertised)
    }
}
