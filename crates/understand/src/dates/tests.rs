//! Expressions and what they mean.
