//! Keys that are known by their shape: a provider's prefix and what follows it.
//!
//! Never takes a prefix in the middle of a word, nor one followed by less than a plausible key.

use super::scan::{Scan, run_end};

/// A key is its prefix and at least `least` bytes of its body.
pub(super) struct Shape {
    pub(super) prefix: &'static str,
    pub(super) body: Body,
    pub(super) least: usize,
    pub(super) rule: Rule,
}

#[derive(PartialEq)]
pub(super) enum Rule {
    /// Prefix and length say enough.
    Sure,
    /// No more than `least` bytes either: a longer run is something else.
    Exact,
    /// Words joined by dashes have this shape too, so the body must look drawn at random.
    Random,
    /// The prefix is an address or a parameter's name, and stays.
    After,
}

/// The bytes a body is made of: letters and digits, and what the name adds or leaves out.
pub(super) enum Body {
    Plain,
    Word,
    Dash,
    Dot,
    Path,
    Query,
    Upper,
    Hex,
}

use Body::{Dash, Dot, Hex, Path, Plain, Query, Upper, Word};
use Rule::{After, Exact, Random, Sure};

#[rustfmt::skip]
pub(super) static SHAPES: &[Shape] = &[
    // Model providers. `sk-` alone is OpenAI's, and that of many who imitate its API.
    shape("sk-", Dash, 16, Random), shape("sk-ant-", Dash, 8, Random), shape("sk-proj-", Dash, 8, Random),
    shape("sk-or-", Dash, 8, Random), shape("sk-svcacct-", Dash, 8, Random), shape("sk-admin-", Dash, 8, Random),
    shape("AIza", Dash, 35, Sure), shape("AQ.Ab", Dash, 30, Sure), shape("gsk_", Plain, 30, Sure),
    shape("xai-", Plain, 30, Sure), shape("pplx-", Plain, 30, Sure), shape("hf_", Plain, 30, Sure),
    shape("r8_", Plain, 30, Sure), shape("nvapi-", Dash, 40, Random), shape("tvly-", Dash, 20, Random),
    shape("lsv2_pt_", Word, 32, Sure), shape("lsv2_sk_", Word, 32, Sure), shape("fw_", Plain, 22, Random),
    // Clouds.
    shape("AKIA", Upper, 16, Exact), shape("ASIA", Upper, 16, Exact), shape("ABIA", Upper, 16, Exact),
    shape("ya29.", Dot, 20, Sure), shape("1//0", Dash, 40, Sure), shape("GOCSPX-", Dash, 24, Sure),
    shape("dop_v1_", Hex, 32, Sure), shape("doo_v1_", Hex, 32, Sure), shape("dor_v1_", Hex, 32, Sure),
    shape("dapi", Hex, 32, Exact), shape("sbp_", Hex, 40, Sure), shape("hvs.", Dash, 24, Random),
    shape("tskey-", Dash, 20, Random), shape("AGE-SECRET-KEY-1", Upper, 50, Sure), shape("glsa_", Word, 32, Sure),
    // Code and packages.
    shape("ghp_", Word, 20, Sure), shape("gho_", Word, 20, Sure), shape("ghu_", Word, 20, Sure),
    shape("ghs_", Dot, 20, Sure), shape("ghr_", Word, 20, Sure), shape("github_pat_", Word, 20, Sure),
    shape("glpat-", Dot, 20, Sure), shape("gldt-", Dash, 20, Random), shape("glrt-", Dot, 20, Random),
    shape("glcbt-", Dash, 20, Random), shape("glptt-", Dash, 20, Random), shape("gloas-", Dash, 20, Random),
    shape("npm_", Plain, 30, Sure), shape("pypi-", Dash, 32, Random), shape("rubygems_", Hex, 40, Sure),
    shape("dckr_pat_", Dash, 20, Sure), shape("ATATT3", Dash, 60, Sure), shape("lin_api_", Plain, 30, Sure),
    shape("figd_", Dash, 30, Sure), shape("PMAK-", Dash, 40, Sure), shape("ntn_", Plain, 40, Sure),
    // Messages.
    shape("xoxa-", Dash, 10, Sure), shape("xoxb-", Dash, 10, Sure), shape("xoxc-", Dash, 10, Sure),
    shape("xoxd-", Query, 10, Sure), shape("xoxe-", Dash, 10, Sure), shape("xoxo-", Dash, 10, Sure),
    shape("xoxp-", Dash, 10, Sure), shape("xoxr-", Dash, 10, Sure), shape("xoxs-", Dash, 10, Sure),
    shape("xapp-", Dash, 10, Sure), shape("hooks.slack.com/services/", Path, 16, After),
    shape("hooks.slack.com/workflows/", Path, 16, After), shape("hooks.slack.com/triggers/", Path, 16, After),
    shape("discord.com/api/webhooks/", Path, 16, After), shape("discordapp.com/api/webhooks/", Path, 16, After),
    shape("api.telegram.org/bot", Path, 16, After), shape("SG.", Dot, 32, Random), shape("SK", Hex, 32, Exact),
    // Payments, shops and signed addresses.
    shape("sk_live_", Plain, 10, Sure), shape("sk_test_", Plain, 10, Random), shape("rk_live_", Plain, 10, Sure),
    shape("rk_test_", Plain, 10, Random), shape("whsec_", Query, 16, Sure), shape("shpat_", Hex, 32, Sure),
    shape("shpss_", Hex, 32, Sure), shape("?sig=", Query, 20, After), shape("&sig=", Query, 20, After),
    shape("X-Amz-Signature=", Hex, 32, After),
];

/// Hides the key that begins at `start`, where the prefix was found in whatever case.
pub(super) fn hide(scan: &mut Scan, shape: &Shape, start: usize) {
    let body = start + shape.prefix.len();
    let word = shape.prefix.as_bytes()[0].is_ascii_alphanumeric();
    if &scan.bytes[start..body] != shape.prefix.as_bytes() || word && !scan.word_starts(start) {
        return;
    }
    // Judged by its beginning, so that a long run of prefixes that are no keys costs a bounded time each.
    let judged = run_end(scan.bytes, body, 64, |b| shape.body.has(b));
    let length = judged - body;
    let fits = match shape.rule {
        Sure | After => length >= shape.least,
        Exact => length == shape.least && !scan.from(judged).first().is_some_and(|b| b.is_ascii_alphanumeric()),
        Random => length >= shape.least && looks_random(&scan.bytes[body..judged]),
    };
    if fits {
        let mut end = run_end(scan.bytes, judged, usize::MAX, |b| shape.body.has(b));
        while matches!(scan.bytes[end - 1], b'.' | b':') {
            end -= 1;
        }
        scan.hide(if shape.rule == After { body } else { start }..end);
    }
}

/// Whether the bytes look drawn at random rather than written as words: upper and lower case, a letter next to a
/// digit, or a stretch that no word is as long as.
pub(super) fn looks_random(bytes: &[u8]) -> bool {
    let mut upper = false;
    let mut lower = false;
    let mut stretch = 0;
    let mut before = b' ';
    for &b in bytes {
        upper |= b.is_ascii_uppercase();
        lower |= b.is_ascii_lowercase();
        stretch = if b.is_ascii_alphanumeric() { stretch + 1 } else { 0 };
        let mixed = stretch > 1 && before.is_ascii_digit() != b.is_ascii_digit();
        if mixed || upper && lower || stretch == 20 {
            return true;
        }
        before = b;
    }
    false
}

const fn shape(prefix: &'static str, body: Body, least: usize, rule: Rule) -> Shape {
    Shape { prefix, body, least, rule }
}

impl Body {
    fn has(&self, b: u8) -> bool {
        match self {
            Plain => b.is_ascii_alphanumeric(),
            Word => b.is_ascii_alphanumeric() || b == b'_',
            Dash => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'),
            Dot => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'),
            Path => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b':'),
            Query => b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+' | b'/' | b'%' | b'='),
            Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Hex => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
        }
    }
}
