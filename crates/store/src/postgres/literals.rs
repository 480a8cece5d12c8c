//! Statements as text, with their arguments as literals. Only the simple query protocol sends several statements in one
//! round trip, and it has no parameters. It also needs no prepared statement, which a pooler could not keep.
//!
//! The literals have the types that the parameters have. No value can end its literal: quotes and backslashes are doubled,
//! and the result does not depend on settings of the server.

use std::fmt::Write as _;

use crate::conn::Arg;
use crate::{Error, Result};

/// Replaces each `$n` of the statement by the literal of its argument. Fails if a text contains a NUL character, which
/// PostgreSQL cannot store, or if the numbers of the parameters do not match the arguments.
pub(super) fn with_literals(sql: &str, args: &[Arg<'_>]) -> Result<String> {
    let mut text = String::with_capacity(sql.len() + 64 * args.len());
    let mut parts = sql.split('$');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = part.split_at(digits);
        let arg = number.parse().ok().and_then(|number: usize| args.get(number.checked_sub(1)?));
        let arg = arg.ok_or_else(|| Error::Database(format!("the arguments do not match the statement: {sql}")))?;
        push_literal(&mut text, arg)?;
        text.push_str(rest);
    }
    Ok(text)
}

fn push_literal(text: &mut String, arg: &Arg<'_>) -> Result<()> {
    match arg {
        Arg::Text(Some(value)) if value.contains('\0') => {
            return Err(Error::Database("a text contains a NUL character".to_owned()));
        }
        // The prefix makes the meaning of backslashes independent of `standard_conforming_strings`.
        Arg::Text(Some(value)) => {
            let _ = write!(text, " E'{}'::text", value.replace('\\', "\\\\").replace('\'', "''"));
        }
        // In quotes, because `-` before a negative number would begin a comment.
        Arg::Int(Some(number)) => {
            let _ = write!(text, " '{number}'::bigint");
        }
        Arg::Text(None) => text.push_str(" NULL::text"),
        Arg::Int(None) => text.push_str(" NULL::bigint"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conn::args;

    #[test]
    fn a_value_cannot_end_its_literal() {
        // SEC-2
        let values = args!["it's \\' $1; --", -5, None::<i64>, None::<&str>];
        let text = with_literals("SELECT $1, 1 -$2, $3, $4 || $1", &values).unwrap();
        let quoted = " E'it''s \\\\'' $1; --'::text";
        assert_eq!(text, format!("SELECT {quoted}, 1 - '-5'::bigint,  NULL::bigint,  NULL::text || {quoted}"));
        assert!(with_literals("SELECT $1", &args!["a\0b"]).is_err());
        assert!(with_literals("SELECT $2", &args!["a"]).is_err());
        assert!(with_literals("SELECT $x", &args!["a"]).is_err());
    }
}
