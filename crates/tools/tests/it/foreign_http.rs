//! Servers over HTTP.
