//! Keys that are recognized by their shape: the prefix of a provider and a body.
//!
//! A prefix in the middle of a word, or without a plausible body, is not a key.

use super::scan::{SecretScan, run_end};

/// The shape of a key: a prefix and at least `min_bytes` bytes of its body.
pub(super) struct KeyShape {
    pub(super) prefix: &'static str,
    pub(super) body: KeyBody,
    pub(super) min_bytes: usize,
    pub(super) rule: KeyRule,
}

/// The condition under which a prefix and a body are a key.
#[derive(PartialEq)]
pub(super) enum KeyRule {
    /// The prefix and the length are sufficient.
    Sure,
    /// The body must have exactly `min_bytes` bytes.
    Exact,
    /// The body must look random, because words joined by dashes have this shape too.
    Random,
    /// The prefix is a URL or the name of a parameter. Only the body is hidden.
    After,
}

/// The alphabet of a body: letters and digits, with the additions or restrictions of the variant.
pub(super) enum KeyBody {
    Plain,
    /// With `_`.
    Word,
    /// With `_` and `-`.
    Dash,
    /// With `_`, `-` and `.`.
    Dot,
    /// With `_`, `-`, `/` and `:`.
    Path,
    /// With `_`, `-`, `+`, `/`, `%` and `=`.
    Query,
    /// No lower-case letters.
    Upper,
    /// Digits and `a` to `f` only.
    Hex,
}

use KeyBody::{Dash, Dot, Hex, Path, Plain, Query, Upper, Word};
use KeyRule::{After, Exact, Random, Sure};

#[rustfmt::skip]
pub(super) static SHAPES: &[KeyShape] = &[
    // Model providers. `sk-` is the prefix of OpenAI and of many providers with a compatible API.
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
    // Payments, shops and signed URLs.
    shape("sk_live_", Plain, 10, Sure), shape("sk_test_", Plain, 10, Random), shape("rk_live_", Plain, 10, Sure),
    shape("rk_test_", Plain, 10, Random), shape("whsec_", Query, 16, Sure), shape("shpat_", Hex, 32, Sure),
    shape("shpss_", Hex, 32, Sure), shape("?sig=", Query, 20, After), shape("&sig=", Query, 20, After),
    shape("X-Amz-Signature=", Hex, 32, After),
];

/// Hides the key that starts at `start`, or only its body for [`KeyRule::After`]. The prefix was found without regard
/// to case, so its case is checked here. Has no effect if the prefix is in the middle of a word, or if the body does
/// not satisfy the rule. A prefix such as `?sig=` needs no start of a word. With [`KeyRule::Exact`], no letter or digit
/// may follow.
///
/// The rule examines at most 64 bytes of the body. The whole body is hidden, except for `.` and `:` at its end.
pub(super) fn hide(scan: &mut SecretScan, shape: &KeyShape, start: usize) {
    let body = start + shape.prefix.len();
    let is_word = shape.prefix.as_bytes()[0].is_ascii_alphanumeric();
    if &scan.bytes[start..body] != shape.prefix.as_bytes() || is_word && !scan.word_starts(start) {
        return;
    }
    // Only the start is examined, so that the cost of each prefix in a long run is bounded.
    let examined = run_end(scan.bytes, body, 64, |b| shape.body.contains(b));
    let length = examined - body;
    let is_key = match shape.rule {
        Sure | After => length >= shape.min_bytes,
        Exact => length == shape.min_bytes && !scan.from(examined).first().is_some_and(|b| b.is_ascii_alphanumeric()),
        Random => length >= shape.min_bytes && looks_random(&scan.bytes[body..examined]),
    };
    if is_key {
        let mut end = run_end(scan.bytes, examined, usize::MAX, |b| shape.body.contains(b));
        while matches!(scan.bytes[end - 1], b'.' | b':') {
            end -= 1;
        }
        scan.hide(if shape.rule == After { body } else { start }..end);
    }
}

/// Returns `true` if the bytes look random: upper and lower case, a letter next to a digit, or a run of 20 letters and
/// digits.
pub(super) fn looks_random(bytes: &[u8]) -> bool {
    let mut upper = false;
    let mut lower = false;
    let mut run_length = 0;
    let mut before = b' ';
    for &b in bytes {
        upper |= b.is_ascii_uppercase();
        lower |= b.is_ascii_lowercase();
        run_length = if b.is_ascii_alphanumeric() { run_length + 1 } else { 0 };
        let is_mixed = run_length > 1 && before.is_ascii_digit() != b.is_ascii_digit();
        if is_mixed || upper && lower || run_length == 20 {
            return true;
        }
        before = b;
    }
    false
}

const fn shape(prefix: &'static str, body: KeyBody, min_bytes: usize, rule: KeyRule) -> KeyShape {
    KeyShape { prefix, body, min_bytes, rule }
}

impl KeyBody {
    /// Returns `true` if the byte belongs to the alphabet.
    fn contains(&self, b: u8) -> bool {
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
