//! Takes a stream of server-sent events apart. Only their data counts here.

/// What has arrived of the event that is not whole yet.
#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Option<String>,
}

impl Events {
    /// The data of the events that these bytes complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Vec<String> {
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

    fn end_line(&mut self, line: &str) -> Option<String> {
        if line.is_empty() {
            return self.data.take().filter(|data| !data.trim().is_empty());
        }
        let value = line.strip_prefix("data:")?;
        let value = value.strip_prefix(' ').unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => self.data = Some(value.to_owned()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_their_bytes_arrive() {
        let stream = "id: 0\nretry: 3000\ndata: \n\n: still here\n\ndata: {\"a\":\"ü\"}\r\n\r\nevent: message\ndata:{\ndata: }\n\n";
        let expected = ["{\"a\":\"ü\"}", "{\n}"];
        for size in [1, 2, 3, 7, stream.len()] {
            let mut events = Events::default();
            let found: Vec<_> = stream.as_bytes().chunks(size).flat_map(|chunk| events.take(chunk)).collect();
            assert_eq!(found, expected, "in pieces of {size}");
        }
    }
}
