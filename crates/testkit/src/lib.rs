//! What tests need and the product does not: databases of their own. Nothing here knows adjutant.

pub mod postgres;
