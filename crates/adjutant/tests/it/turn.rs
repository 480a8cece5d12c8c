//! Parses the event stream of a turn, and checks the rules for every stream.

use serde_json::Value;

/// The events of a turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) events: Vec<(String, Value)>,
}

impl Turn {
    /// Parses a stream. Panics if it is not well formed (CHAT-1, CHAT-5, CHAT-6).
    #[track_caller]
    pub(crate) fn read(text: &str, request_id: &str) -> Self {
        assert!(text.ends_with("\n\n"), "incomplete: {text}");
        let mut events = Vec::new();
        for block in text.trim_end().split("\n\n").filter(|block| !block.starts_with(':')) {
            let mut lines = block.lines();
            let mut line = |prefix| lines.next().and_then(|line| line.strip_prefix(prefix)).unwrap();
            assert_eq!(line("id: "), (events.len() + 1).to_string(), "{text}");
            let name = line("event: ").to_owned();
            let data: Value = serde_json::from_str(line("data: ")).unwrap();
            assert_eq!(data["request_id"], request_id, "{block}");
            events.push((name, data));
        }
        let turn = Self { events };
        let names: Vec<_> = turn.events.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names.iter().filter(|name| **name == "done").count(), 1, "{text}");
        assert_eq!(names.last(), Some(&"done"), "{text}");
        let known = ["thinking", "tool_call", "response_delta", "error", "done"];
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
        let mut accumulated = String::new();
        for delta in turn.events_named("response_delta") {
            accumulated.push_str(delta["delta"].as_str().unwrap());
            assert_eq!(delta["accumulated"], accumulated, "{text}");
        }
        assert_eq!(turn.output(), accumulated.trim_end(), "{text}");
        assert!(!turn.output().is_empty(), "{text}");
        assert!(!has_uuid(turn.output()), "{text}");
        if turn.events_named("error").any(|error| error["recoverable"] == false) {
            assert_eq!(turn.done()["success"], false, "{text}");
        }
        let statuses: Vec<_> = turn.events_named("tool_call").map(|call| call["status"].as_str().unwrap()).collect();
        assert!(statuses.chunks(2).all(|pair| pair[0] == "in_progress" && pair[1] != "in_progress"), "{text}");
        turn
    }

    /// Returns the data of all events with this name.
    pub(crate) fn events_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |(event, _)| event == name).map(|(_, data)| data)
    }

    pub(crate) fn done(&self) -> &Value {
        &self.events.last().unwrap().1
    }

    pub(crate) fn output(&self) -> &str {
        self.done()["final_output"].as_str().unwrap()
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.done()["success"] == true
    }

    /// Returns the name and the final status of each tool call.
    pub(crate) fn calls(&self) -> Vec<(&str, &str)> {
        let ended = self.events_named("tool_call").filter(|call| call["status"] != "in_progress");
        ended.map(|call| (call["tool_name"].as_str().unwrap(), call["status"].as_str().unwrap())).collect()
    }

    /// Returns the type of each error, and `true` if it is recoverable.
    pub(crate) fn errors(&self) -> Vec<(&str, bool)> {
        let errors = self.events_named("error");
        errors.map(|error| (error["error_type"].as_str().unwrap(), error["recoverable"] == true)).collect()
    }

    /// Checks that the offline model has replied because the first model failed.
    #[track_caller]
    pub(crate) fn assert_fell_back(&self) {
        assert_eq!(self.errors(), [("model_unavailable", true)], "{self:?}");
        let message = self.events_named("error").next().unwrap()["message"].as_str().unwrap();
        assert!(message.starts_with("AI service temporarily unavailable"), "{message}");
        assert!(message.contains("try again"), "{message}");
        assert!(self.succeeded(), "{self:?}");
        assert_eq!(self.done()["model"], "offline", "{self:?}");
    }
}

pub(crate) fn has_uuid(text: &str) -> bool {
    find_uuid(text).is_some()
}

/// Returns the first UUID in a text.
pub(crate) fn find_uuid(text: &str) -> Option<&str> {
    let starts = text.char_indices().map(|(at, _)| at);
    let mut words = starts.filter_map(|at| text.get(at..at + 36));
    words.find(|word| word.parse::<uuid::Uuid>().is_ok())
}
