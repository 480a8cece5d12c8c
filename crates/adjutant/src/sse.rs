//! Takes a stream of server-sent events apart.

/// One event with data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// `message` where the stream does not say.
    pub(crate) name: String,
    pub(crate) data: String,
    /// With which the stream can be taken up again behind it.
    pub(crate) id: Option<String>,
}

/// What has arrived of the event that is not whole yet.
#[derive(Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
    /// The last id that was said, with an event or without one.
    pub(crate) last_id: Option<String>,
}

impl Events {
    /// The events that these bytes complete.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut whole = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                whole.extend(self.end_line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])));
            }
        }
        whole
    }

    fn end_line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let name = self.name.take().unwrap_or_else(|| "message".to_owned());
            let id = self.id.take();
            return self.data.take().filter(|data| !data.trim().is_empty()).map(|data| Event { name, data, id });
        }
        let (field, value) = line.split_once(':')?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = Some(value.to_owned()),
            "data" => self.add(value),
            "id" => {
                self.id = Some(value.to_owned());
                self.last_id = Some(value.to_owned());
            }
            _ => {}
        }
        None
    }

    fn add(&mut self, value: &str) {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_their_bytes_arrive() {
        let stream = "id: 0\nretry: 3000\ndata: \n\n: still here\n\ndata: {\"a\":\"ü\"}\r\n\r\nid: 7\nevent: done\ndata:{\ndata: }\n\n";
        let event = |id: Option<&str>, name: &str, data: &str| Event {
            name: name.to_owned(),
            data: data.to_owned(),
            id: id.map(str::to_owned),
        };
        let expected = [event(None, "message", "{\"a\":\"ü\"}"), event(Some("7"), "done", "{\n}")];
        for size in [1, 2, 3, 7, stream.len()] {
            let mut events = Events::default();
            let found: Vec<_> = stream.as_bytes().chunks(size).flat_map(|chunk| events.take(chunk)).collect();
            assert_eq!(found, expected, "in pieces of {size}");
            assert_eq!(events.last_id.as_deref(), Some("7"));
        }
    }
}
