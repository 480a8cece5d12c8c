//! Tests of streams. The output equals that for the whole text, for all chunk boundaries and pauses. The buffer is
//! bounded, and the time is linear.

use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::{MARK, RedactOptions, Redactor, shapes};
use super::{BUFFER_LIMIT, MAX_KEY_BYTES, RedactStream};

/// Fragments of secrets, quotes, addresses and keys. The tests combine them at random.
#[rustfmt::skip]
const PIECES: [&str; 90] = [
    "password", "Password: ", "token", "api_key", "api ", "key", "authorization", "cookie", "pwd", "--password", "secret",
    "Kind::", "self.", "=", ":", ": ", " = ", "=>", ":=", "\"", "'", "`", "\\", "\\\"", "\\\\", "\\n", "\n", "\r\n", " ",
    "  ", ",", ", ", ";", "&", "(", ")", "[", "]", "{", "}", "<", ">", "$", "${", "%", "%20", "://", ":\\/\\/", "@", ".",
    "-", "_", "/", "#", "?", "*", "**", "x", "m", "n", "hunter2", "a1B2c3D4e5F6a7B8c9D0", "b.com", "git", "user",
    "Bearer ", "Basic ", "eyJhbGciOi", "eyJhbGciOiJIUzI1NiJ9", "eyJ", "sk-", "sk-ant-", "AKIA", "ABCDEFGHIJKLMNOP",
    "ghp_", "0123456789abcdef", "\u{1b}[1;31m", "\u{e9}", "\u{4f60}\u{597d}", "\0", "[redacted]", "[reda", "null",
    "-----BEGIN ", "RSA PRIVATE KEY-----", "-----END ", "MIIEvQ==", "str", "xyzzy", "plugh",
];

/// Typical output lines of processes.
#[rustfmt::skip]
const LINES: [&str; 20] = [
    "2026-01-31 12:00:00 INFO listening on http://localhost:8080/\n", "Continue? [y/N] ", "Password: ", "ok\n", "\n",
    "password = hunter\n", "  .next()\n", "\"--password\",\n", "  \"hunter2\",\n", "\"Authorization\": [\n",
    "    \"Bearer abcdef1\"\n", "mail a.b@example.com now\n", "https://user:hunter2@host/x ", "API_KEY=abc1 run\n",
    "-----BEGIN PRIVATE KEY-----\n", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n", "-----END PRIVATE KEY-----\n",
    "KEY=\"-----BEGIN RSA PRIVATE KEY-----\n", "token: 'abc def' # \"x\"\n", "first xyzzy\nplugh \"xyzzy\\nplugh\"\n",
];

fn redactor() -> Redactor {
    Redactor::new(RedactOptions::default())
        .with_known(["xyzzy\nplugh", "xyzzy!", "aXaXaXaXaXaY", "n\u{e9}\u{e9}\u{e9}1"].map(str::to_owned))
}

fn whole(redactor: &Redactor, bytes: &[u8]) -> String {
    redactor.text(&String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")).into_owned()
}

/// Returns the concatenated output. The bits of `pauses` select the chunks that are followed by a pause.
fn streamed(mut stream: RedactStream, pieces: &[&[u8]], pauses: u64) -> String {
    let mut out = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        out.push_str(stream.push(piece));
        assert!(stream.buffer.len() <= 2 * BUFFER_LIMIT);
        if pauses >> (i % 64) & 1 == 1 {
            out.push_str(stream.pause());
        }
    }
    out.push_str(&stream.finish());
    out
}

/// Returns the bytes split at these positions.
fn cut<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
    at.sort_unstable();
    at.windows(2).map(|ends| &bytes[ends[0]..ends[1]]).collect()
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        6 => select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        4 => select(&LINES[..]).prop_map(|line| line.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 1..4),
    ];
    vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_output_does_not_depend_on_the_chunks(
        bytes in text(), cuts in vec(any::<prop::sample::Index>(), 0..12), pauses: u64,
    ) {
        // SUP-9
        let redactor = redactor();
        prop_assert_eq!(streamed(redactor.stream(), &cut(&bytes, &cuts), 0), whole(&redactor, &bytes));
        prop_assert_eq!(streamed(redactor.stream(), &cut(&bytes, &cuts), pauses), whole(&redactor, &bytes));
    }

    #[test]
    fn the_output_is_the_same_byte_by_byte(bytes in text(), pauses: u64) {
        // SUP-9
        let redactor = redactor();
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(streamed(redactor.stream(), &pieces, pauses), whole(&redactor, &bytes));
    }
}

/// Returns four consecutive bytes of the secret that occur in the output.
fn leak<'s>(out: &str, secret: &'s str) -> Option<&'s str> {
    (0..secret.len().saturating_sub(3)).filter_map(|at| secret.get(at..at + 4)).find(|part| out.contains(part))
}

/// Generates the text before a secret, the secret, and the text after it.
fn secret() -> impl Strategy<Value = [String; 3]> {
    let key = (0..shapes::SHAPES.len(), "([0-9][a-f]){32}", "[0-9]{64}").prop_map(|(i, mixed, digits)| {
        let shape = &shapes::SHAPES[i];
        let body = if matches!(shape.body, shapes::KeyBody::Upper) { digits } else { mixed };
        [shape.prefix.to_owned(), body[..shape.min_bytes].to_owned(), String::new()]
    });
    let after = [
        ("password: ", ""),
        ("API_KEY=", ""),
        ("\"token\": \"", "\""),
        ("Bearer ", ""),
        ("https://user:", "@host/"),
        ("--password ", ""),
        ("eyJhbGciOiJIUzI1NiJ9.", ""),
    ];
    let value = (select(after.to_vec()), "[0-9]{16,40}")
        .prop_map(|((before, after), digits)| [before.to_owned(), digits, after.to_owned()]);
    let lines = vec("[0-9]{64}", 1..40).prop_map(|lines| {
        let begin = "-----BEGIN PRIVATE KEY-----\n";
        let end = "\n-----END PRIVATE KEY-----";
        [begin.to_owned(), lines.join("\n"), end.to_owned()]
    });
    prop_oneof![key, value, lines]
}

proptest! {
    #[test]
    fn no_part_of_a_secret_is_returned(
        secrets in vec(secret(), 1..5), cuts in vec(any::<prop::sample::Index>(), 0..40), pauses: u64,
    ) {
        // SUP-9
        let redactor = Redactor::new(RedactOptions::default());
        let text: String = secrets.iter().map(|parts| format!("see {}\nor ", parts.concat())).collect();
        let out = streamed(redactor.stream(), &cut(text.as_bytes(), &cuts), pauses);
        prop_assert_eq!(&out, &redactor.text(&text));
        for [_, secret, _] in &secrets {
            prop_assert_eq!(leak(&out, secret), None, "{}", out);
        }
    }

    #[test]
    fn keys_without_a_begin_are_hidden(lines in vec("[A-Za-z0-9+/]{64}", 0..30), after in text(),
        cuts in vec(any::<prop::sample::Index>(), 0..12), pauses: u64,
    ) {
        let redactor = redactor();
        let end = "-----END RSA PRIVATE KEY-----";
        let bytes = [lines.join("\n").as_bytes(), b"\n", end.as_bytes(), b"\n", &after].concat();
        let out = streamed(redactor.stream_from_middle(), &cut(&bytes, &cuts), pauses);
        let rest = whole(&redactor, &[b"\n", &*after].concat());
        prop_assert_eq!(out, format!("{MARK}{rest}"));
    }

    #[test]
    fn ordinary_text_from_the_middle_is_not_changed(
        bytes in text(), cuts in vec(any::<prop::sample::Index>(), 0..12), pauses: u64,
    ) {
        prop_assume!(!bytes.windows(9).any(|part| part == b"-----END "));
        let redactor = redactor();
        let out = streamed(redactor.stream_from_middle(), &cut(&bytes, &cuts), pauses);
        prop_assert_eq!(out, whole(&redactor, &bytes));
    }

    #[test]
    fn long_lines_are_redacted_or_cut_off(
        parts in vec((select(&PIECES[..]), 1_usize..3000), 1..60), size in 1_usize..100_000, pauses: u64,
    ) {
        let line: String = parts.iter().map(|(piece, times)| piece.replace('\n', " ").repeat(*times) + " ").collect();
        let redactor = Redactor::new(RedactOptions::default());
        let pieces: Vec<&[u8]> = line.as_bytes().chunks(size).collect();
        let (out, expected) = (streamed(redactor.stream(), &pieces, pauses), whole(&redactor, line.as_bytes()));
        // If more than necessary was hidden, it is the end of the line.
        let shown = out.strip_suffix(MARK).unwrap_or(&out);
        prop_assert!(out == expected || expected.starts_with(shown));
    }
}

#[test]
fn too_many_possible_key_lines_are_returned() {
    let numbers: String = (0..40_000).map(|number| format!("{number}\n")).collect();
    for size in [1000, 50_000, 200_000] {
        let pieces: Vec<&[u8]> = numbers.as_bytes().chunks(size).collect();
        assert_eq!(streamed(redactor().stream_from_middle(), &pieces, 0), numbers);
    }
    let key = format!("{}-----END PRIVATE KEY-----\n{numbers}", &numbers[..50_000]);
    assert_eq!(streamed(redactor().stream_from_middle(), &[key.as_bytes()], 0), format!("{MARK}\n{numbers}"));
    let long = format!("{}\nthe end\n", [&"x".repeat(64); 3000].map(String::as_str).join("\n"));
    for size in [1000, 50_000, 300_000] {
        let pieces: Vec<&[u8]> = long.as_bytes().chunks(size).collect();
        assert_eq!(streamed(redactor().stream_from_middle(), &pieces, 0), format!("{MARK}\nthe end\n"));
    }
}

#[test]
fn prompts_are_returned_and_starts_of_secrets_are_not() {
    // SUP-9
    let cases = [
        ("Password: ", "Password: ", "hunter2\n", "[redacted]\n"),
        ("Continue? [y/N] ", "Continue? [y/N] ", "y\n", "y\n"),
        ("login: ", "login: ", "root\n", "root\n"),
        ("user@host:~$ ", "user@host:~$ ", "ls\n", "ls\n"),
        (">>> ", ">>> ", "1\n", "1\n"),
        ("the key is sk-", "the key is ", "a1b2c3d4e5f6a7b8c9d0\n", "[redacted]\n"),
        ("my token is abc", "my token is ", "def\n", "abcdef\n"),
        ("write to jane", "write to ", "@example.com\n", "[redacted]\n"),
        ("at https://user", "at https:", ":pw@host/\n", "//user:[redacted]@host/\n"),
        ("TOKEN=abc", "TOKEN=", "1\n", "[redacted]\n"),
        ("a xyz", "a ", "zy! b\n", "[redacted] b\n"),
        ("Enter passphrase for key '/a/id': ", "Enter passphrase for key '/a/id': ", "\n", "\n"),
    ];
    for (text, returned, more, rest) in cases {
        let mut stream = redactor().stream();
        assert_eq!(stream.push(text.as_bytes()), "");
        assert_eq!(stream.pause(), returned, "{text}");
        assert_eq!(stream.pause(), "");
        assert_eq!(stream.push(more.as_bytes()), rest, "{text}");
        assert_eq!(stream.finish(), "");
    }
}

#[test]
fn complete_lines_are_returned() {
    let mut stream = redactor().stream();
    for line in
        ["ready\n", "token: abc123\n", "wrong password\n", "-----BEGIN CERTIFICATE-----\n", "a@b.com\n", "eyJabc\n"]
    {
        assert_eq!(stream.push(line.as_bytes()), whole(&redactor(), line.as_bytes()));
    }
    assert_eq!(stream.push(b"password = hunter\n"), "");
    assert_eq!(stream.push(b"  "), "");
    assert_eq!(stream.push(b"x"), "");
    assert_eq!(stream.push(b"\n"), "password = [redacted]\n  x\n");
}

#[test]
fn a_value_without_an_end_hides_the_rest_of_its_line() {
    let mut stream = Redactor::new(RedactOptions::default()).stream();
    let mut out = stream.push(b"a password='x").to_owned();
    for _ in 0..100 {
        out += stream.push(&[b'x'; 4096]);
        assert!(stream.buffer.len() <= 2 * BUFFER_LIMIT);
    }
    out += stream.push(b"' -----BEGIN PRIV");
    out += stream.push(b"ATE KEY-----\nMIIE\n-----END PRIVATE KEY----- b\nc\n");
    assert_eq!(out, format!("a password={MARK} b\nc\n"));
}

#[test]
fn a_name_waits_for_its_value_after_any_white_space() {
    let mut stream = Redactor::new(RedactOptions::default()).stream();
    let mut out = stream.push(b"\"--password\",\n").to_owned();
    let blank = " \n".repeat(BUFFER_LIMIT);
    out += stream.push(blank.as_bytes());
    assert!(stream.buffer.len() < BUFFER_LIMIT);
    out += stream.push(b"\"hunter2\", 1\n");
    assert_eq!(out, format!("\"--password\",\n{blank}\"{MARK}\", 1\n"));
}

#[test]
fn a_key_without_an_end_is_cut_off() {
    let mut stream = Redactor::new(RedactOptions::default()).stream();
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7MIIEvQIBADAN\n";
    let mut out = stream.push(b"-----BEGIN PRIVATE KEY-----\n").to_owned();
    assert_eq!(out, MARK);
    for _ in 0..3 * MAX_KEY_BYTES / line.len() {
        out += stream.push(line.as_bytes());
        assert!(stream.buffer.len() < 2 * line.len());
    }
    out += stream.push(b"and so on\nfor ever\n");
    assert_eq!(out, format!("{MARK}\nand so on\nfor ever\n"));
}

#[test]
fn no_literal_ends_with_another() {
    // A stream continues after the end of the last inspected literal.
    let text: Vec<String> =
        super::super::names::endings().chain(shapes::SHAPES.iter().map(|shape| shape.prefix.to_lowercase())).collect();
    for literal in &text {
        assert_eq!(text.iter().filter(|other| other.ends_with(literal.as_str())).count(), 1, "{literal}");
    }
}

/// A stream of ten times the length takes about ten times as long, for every content.
#[test]
fn streams_take_linear_time() {
    // SUP-9
    let units = [
        "a",
        "sk-",
        "password=",
        "password = x\n",
        "\"--password\",\n",
        "eyJ",
        "a@",
        "://",
        "-----BEGIN PRIVATE KEY-----",
        "xyzzy\n",
        "\n",
        " ",
        "\"",
        "aX",
        "-----BEGIN PRIVATE KEY-----\n\"\n",
        "api ",
        "\\",
        "Bearer ",
        "'\"",
        "\u{e9}",
    ];
    for unit in units {
        for size in [1, 7, BUFFER_LIMIT] {
            let max_length = if size == BUFFER_LIMIT { 2_000_000 } else { 200_000 };
            let time = |length: usize| {
                let text = unit.repeat(length / unit.len());
                let began = Instant::now();
                let mut stream = redactor().stream();
                for chunk in text.as_bytes().chunks(size) {
                    stream.push(chunk);
                    assert!(stream.buffer.len() <= 2 * BUFFER_LIMIT);
                }
                stream.finish();
                began.elapsed()
            };
            let short = time(max_length / 10);
            let long = time(max_length);
            assert!(long < short * 40 + Duration::from_millis(300), "{unit:?} by {size}: {short:?}, then {long:?}");
        }
    }
}
