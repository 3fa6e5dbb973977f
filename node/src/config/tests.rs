//! Settings, flags and the data folder.

use std::path::Path;

use super::folder::write_whole;
use super::*;

fn folder(settings: &str) -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::find(Some(place.path())).unwrap();
    std::fs::write(folder.settings(), settings).unwrap();
    (place, folder)
}

fn refused(settings: &str) -> String {
    let (_place, folder) = folder(settings);
    crate::cli::chain(&Config::load(folder, Flags::default()).unwrap_err())
}

#[test]
fn without_anything_a_node_is_silent_on_loopback() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::find(Some(&place.path().join("new"))).unwrap();
    let config = Config::load(folder, Flags::default()).unwrap();
    assert_eq!((config.http, config.place), (HTTP_DEFAULT, Place::Silent));
    assert!(config.place.bind().ip().is_loopback() && !config.place.is_open());
    assert_eq!((config.rate_limit, config.rate_burst, config.mdns), (20, 60, true));
    assert_eq!(config.stance_reminder_minutes, 10);
    assert_eq!(config.local_trust, LocalTrust::Token);
    assert!(!config.name.is_empty() && !config.name_given && !config.host.is_empty());
    assert!(!place.path().join("new").exists(), "reading makes nothing");
}

#[test]
fn every_setting_is_read_and_flags_win() {
    let text = r#"{"http": "127.0.0.1:1", "cluster": "10.0.0.1:2", "name": "desk", "hostId": "h",
        "advertise": ["10.0.0.1", "10.0.0.2:9"], "allowedHosts": ["desk.lan"],
        "localTrust": "open", "lan": true, "clusterId": "c", "mdns": false, "timing": "wifi",
        "rateLimit": 0, "rateBurst": 5, "stanceReminderMinutes": 43200, "tools": "core",
        "seeds": ["10.0.0.3"]}"#;
    let (_place, folder) = folder(text);
    let config = Config::load(folder.clone(), Flags::default()).unwrap();
    assert_eq!(config.http.to_string(), "127.0.0.1:1");
    assert_eq!(config.place, Place::Given("10.0.0.1:2".parse().unwrap()));
    assert_eq!((config.name.as_str(), config.host.as_str()), ("desk", "h"));
    assert_eq!(config.advertise.len(), 2);
    assert_eq!(config.allowed_hosts, ["desk.lan"]);
    assert!(config.name_given);
    assert_eq!(config.local_trust, LocalTrust::Open);
    assert_eq!(config.expected.as_deref(), Some("c"));
    assert_eq!((config.mdns, config.timing), (false, Some(Timing::Wifi)));
    assert_eq!((config.rate_limit, config.rate_burst, config.seeds.len()), (0, 5, 1));
    assert_eq!(config.stance_reminder_minutes, 43_200);
    assert_eq!(config.tools, Set::Core);
    assert_eq!(config.seeds[0].field, "seeds[0] of the settings");
    let flags = Flags {
        name: Some("other".to_owned()),
        http: Some("127.0.0.1:0".parse().unwrap()),
        cluster: Some("127.0.0.1:0".parse().unwrap()),
        ..Flags::default()
    };
    let config = Config::load(folder, flags).unwrap();
    assert_eq!((config.name.as_str(), config.http.port()), ("other", 0));
    assert_eq!(config.place, Place::Given("127.0.0.1:0".parse().unwrap()));
    assert!(!config.place.is_open(), "loopback is heard by nobody");
}

#[test]
fn an_opened_lan_stays_open() {
    let (_place, folder) = folder(r#"{"lan": true}"#);
    let config = Config::load(folder, Flags::default()).unwrap();
    assert_eq!(config.place, Place::Lan);
    assert!(config.place.bind().ip().is_unspecified());
    assert_eq!(config.place.bind().port(), CLUSTER_PORT);
}

#[test]
fn a_wrong_setting_is_named_with_what_is_right() {
    for (settings, right) in [
        (r#"{"htp": "127.0.0.1:1"}"#, "did you mean \"http\"?"),
        (r#"{"rate_limit": 1}"#, "did you mean \"rateLimit\"?"),
        (r#"{"zzz": 1}"#, "the settings are http, cluster,"),
        (r#"{"port": 5688}"#, "one of n2n-nexus; use http"),
        (r#"{"http": "localhost"}"#, "http is \"localhost\": give \"ADDRESS:PORT\""),
        (r#"{"cluster": 5689}"#, "cluster is 5689: give \"ADDRESS:PORT\""),
        (r#"{"timing": "fast"}"#, "give one of auto, wired, wifi, relaxed"),
        (r#"{"localTrust": true}"#, "give \"open\" or \"token\""),
        (r#"{"lan": "yes"}"#, "give true or false"),
        (r#"{"rateBurst": 0}"#, "give a whole number from 1"),
        (r#"{"tools": "some"}"#, "tools is \"some\": give \"all\" or \"core\""),
        (r#"{"rateLimit": -1}"#, "give a whole number from 0"),
        (
            r#"{"stanceReminderMinutes": 43201}"#,
            "stanceReminderMinutes is 43201: give a whole number of minutes from 0 (no reminders) \
             to 43200",
        ),
        (r#"{"stanceReminderMinutes": "10"}"#, "stanceReminderMinutes is \"10\": give a whole"),
        (r#"{"advertise": "desk"}"#, "advertise is \"desk\": give a list of \"ADDRESS\" or"),
        (r#"{"advertise": ["::1", "desk"]}"#, "advertise[1] is \"desk\": give \"ADDRESS\" or"),
        (r#"{"advertise": ["0.0.0.0"]}"#, "advertise[0] is \"0.0.0.0\": nobody can be reached"),
        (r#"{"seeds": "a"}"#, "seeds is \"a\": give a list of \"HOST:PORT\""),
        (r#"{"seeds": ["desk", "a:b:c"]}"#, "seeds[1] is \"a:b:c\": give \"HOST\", \"HOST:PORT\""),
        (r#"{"seeds": [""]}"#, "seeds[0] is \"\": give \"HOST\""),
        (r#"{"allowedHosts": ["*"]}"#, "allowedHosts[0] is \"*\": every name would be let in"),
        (r#"{"allowedHosts": ["a", "*.lan"]}"#, "allowedHosts[1] is \"*.lan\": every name would"),
        (r#"{"allowedHosts": ["desk:80"]}"#, "allowedHosts[0] is \"desk:80\": give a list of host"),
        (r#"{"allowedHosts": ["http://desk"]}"#, "names without a port, such as [\"desk.lan\"]"),
        (r#"{"allowedHosts": [""]}"#, "allowedHosts[0] is \"\": give a list of host names"),
        (r#"{"cluster": "224.0.0.1:1"}"#, "cluster is \"224.0.0.1:1\": it names no single machine"),
        (r#"{"hostId": "a\nb"}"#, "give a text of one line of at most 200 bytes"),
        (r#"{"name": "a b"}"#, "name is \"a b\": give 1 to 48 characters out of"),
        (r#"{"name": ""}"#, "name is \"\": give a text"),
        ("[]", "are not a JSON object"),
        ("{", "settings.json is not JSON: EOF"),
        (
            r#"{"seeds": ["desk"], "lan": true, "seeds": []}"#,
            "settings.json has the key \"seeds\" twice at line 1 column 40: give each key once",
        ),
    ] {
        let text = refused(settings);
        assert!(text.contains(right), "{settings}: {text}");
    }
}

#[test]
fn a_code_that_is_none_is_refused_before_anything() {
    let (_place, folder) = folder("{}");
    let flags = Flags { join: Some("nexus1.voter.abc".to_owned()), ..Flags::default() };
    let error = Config::load(folder, flags).unwrap_err();
    assert!(error.is_usage());
    let text = crate::cli::chain(&error);
    assert!(
        text.starts_with("invite code (--join) cannot be used: invite code is cut off"),
        "{text}"
    );
}

#[test]
fn written_settings_keep_what_others_wrote() {
    let (_place, folder) = folder(r#"{"http": "127.0.0.1:1", "clusterId": "old"}"#);
    let path = folder.settings();
    let changes = [("lan", true.into()), ("clusterId", "new".into())];
    Settings::change(&path, &changes).unwrap();
    let settings = Settings::read(&path).unwrap();
    assert!(settings.lan && settings.http.is_some());
    assert_eq!(settings.cluster_id.as_deref(), Some("new"));
    Settings::change(&path, &[("lan", serde_json::Value::Null)]).unwrap();
    assert!(!Settings::read(&path).unwrap().lan);
}

#[test]
fn one_node_holds_a_folder_and_says_so() {
    let (_place, folder) = folder("{}");
    assert!(folder.holder().is_none());
    let mut lock = folder.lock(1_700_000_000_000).unwrap();
    let held = folder.lock(0).unwrap_err().to_string();
    assert!(held.contains(&format!("process id {}", std::process::id())), "{held}");
    assert!(held.contains("still starting"), "{held}");
    lock.serves_at("http://127.0.0.1:7").unwrap();
    let held = folder.lock(0).unwrap_err().to_string();
    assert!(held.contains("at http://127.0.0.1:7"), "{held}");
    assert_eq!(folder.holder().unwrap().pid, std::process::id());
    drop(lock);
    assert!(folder.holder().is_none());
}

#[test]
fn the_token_is_made_once_and_for_this_user_alone() {
    let (_place, folder) = folder("{}");
    let token = folder.token().unwrap();
    assert_eq!(token.len(), 64);
    assert_eq!(folder.token().unwrap(), token);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.path().join(nexus_adapter::endpoint::TOKEN_FILE);
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_folder_set_aside_is_whole_and_leaves_settings_and_token() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::find(Some(&place.path().join("data"))).unwrap();
    folder.make().unwrap();
    let token = folder.token().unwrap();
    std::fs::write(folder.settings(), "{}").unwrap();
    std::fs::write(folder.path().join("member"), "x").unwrap();
    let aside = folder.set_aside("now").unwrap();
    assert_eq!(aside.file_name().unwrap(), "data.before-join-now");
    assert!(aside.join("member").exists() && !folder.path().join("member").exists());
    assert_eq!(folder.token().unwrap(), token);
    assert!(folder.settings().exists());
}

#[test]
fn what_cannot_be_written_says_why() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let folder = Folder::find(Some(&file.join("below"))).unwrap();
    let text = folder.make().unwrap_err().to_string();
    assert!(text.contains("cannot be made: a file stands where a folder should be"), "{text}");
    let text = write_whole(Path::new("/proc/nexus"), b"", 0o644).unwrap_err().to_string();
    assert!(text.starts_with("/proc/nexus cannot be written"), "{text}");
}
