//! The API description for programs (`/openapi.json`) and people (`/docs`), generated from the handlers. The pages load
//! nothing from other servers.

mod protocols;

use std::sync::LazyLock;

use api::Problem;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use axum::routing::get;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, Content, ContentBuilder, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApi, OpenApiBuilder,
    Ref, RefOr, Required, ResponseBuilder, Schema, Type,
};
use utoipa::{OpenApi as _, PartialSchema, ToSchema};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::App;
use crate::handlers::RESTORE;

const PROBLEM_JSON: &str = "application/problem+json";

const API_DESCRIPTION: &str = "Runs AI agents in one program: tasks and reminders in natural language, \
                               supervised command-line agents. Errors are `application/problem+json`. Every \
                               response has an `X-Request-ID`. Requests that change data accept an \
                               `Idempotency-Key`.";

/// Returns the description without the handlers: title, version, license, shared schemas and authentication. Operations
/// accept a bearer token or no token, because authentication is optional.
pub(crate) fn base_description() -> OpenApi {
    let license = LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("adjutant")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(API_DESCRIPTION))
        .license(Some(license))
        .build();
    let components = ComponentsBuilder::new()
        .schema(Problem::name(), Problem::schema())
        .schema(model::Violation::name(), model::Violation::schema())
        .security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)))
        .build();
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components))
        // A token if authentication is configured, otherwise nothing.
        .security(Some([SecurityRequirement::new("token", [""; 0]), SecurityRequirement::default()]))
        .build()
}

/// Returns the routes of `/openapi.json` and `/docs`. The description is created and encoded at its first request, because
/// that takes a large part of the start of the server.
pub(crate) fn pages() -> Router<App> {
    static DESCRIPTION: LazyLock<Bytes> = LazyLock::new(|| encode(crate::api_description()));
    let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    let config = Config::new(["/openapi.json"]).use_base_layout().validator_url("none");
    Router::from(SwaggerUi::new("/docs").config(config))
        .route("/openapi.json", get(|| async move { (json, DESCRIPTION.clone()) }))
}

/// Adds the common errors, the idempotency keys and the paths of the protocols to the description, and returns it as JSON.
/// The paths of the protocols get no common errors. All changes except a restore get an idempotency key. The result is
/// empty if the description cannot be encoded.
fn encode(mut description: OpenApi) -> Bytes {
    for (path, item) in &mut description.paths.paths {
        for operation in [&mut item.put, &mut item.post, &mut item.patch, &mut item.delete].into_iter().flatten() {
            if path != RESTORE {
                add_idempotency_key(operation);
            }
            add_problems(operation);
        }
        item.get.iter_mut().for_each(add_problems);
    }
    open_extended_schemas(&mut description);
    description.merge(protocols::Protocols::openapi());
    Bytes::from(serde_json::to_vec(&description).unwrap_or_default())
}

/// Allows further properties in schemas that others extend. A new task is a task with its reminder, so the schema of a task
/// alone must accept it.
fn open_extended_schemas(description: &mut OpenApi) {
    let Some(components) = &mut description.components else { return };
    let mut extended: Vec<String> = Vec::new();
    for schema in components.schemas.values() {
        let RefOr::T(Schema::AllOf(parts)) = schema else { continue };
        extended.extend(parts.items.iter().filter_map(|part| match part {
            RefOr::Ref(part) => part.ref_location.rsplit('/').next().map(str::to_owned),
            RefOr::T(_) => None,
        }));
    }
    for name in extended {
        if let Some(RefOr::T(Schema::Object(schema))) = components.schemas.get_mut(&name) {
            schema.additional_properties = None;
        }
    }
}

/// Adds the optional header `Idempotency-Key` and the response 409 for a key in use. A 409 that the handler describes
/// is kept.
fn add_idempotency_key(operation: &mut Operation) {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[!-~]{1,255}$")).build();
    let parameter = ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("Within 24 hours a repetition of the request with this key has no further effect"))
        .schema(Some(text))
        .build();
    operation.parameters.get_or_insert_default().push(parameter.into());
    add_problem(operation, 409, "The first request with this Idempotency-Key is still running");
}

/// Adds the errors that every operation may respond with: 403, 500, 504, and 413 and 415 if it has a body. An operation
/// that needs a user also gets 401, 422, 429 and 503. Statuses that the handler describes keep their text and get the
/// body of a problem.
fn add_problems(operation: &mut Operation) {
    add_problem_bodies(operation);
    let common = [
        (403, "The user, or the origin of the web page, is not allowed to do this"),
        (500, "An internal error; the server log has the details under the id of the request"),
        (504, "The request took longer than the time limit"),
    ];
    let user = [
        (401, "A valid token is required"),
        (429, "Too many requests; try again after the time in Retry-After"),
        (422, "The request is invalid; `errors` lists the violations"),
        (503, "The database is not available"),
    ];
    // A handler with `security(())` needs no authentication.
    let is_open =
        operation.security.as_ref().is_some_and(|needed| needed.iter().all(|n| *n == SecurityRequirement::default()));
    let has_body = operation.request_body.is_some();
    let body: &[(u16, &str)] = &[(413, "The body is too large"), (415, "The body is not JSON")];
    let sets = [common.as_slice(), if is_open { &[] } else { &user }, if has_body { body } else { &[] }];
    sets.into_iter().flatten().for_each(|(status, text)| add_problem(operation, *status, text));
}

/// Adds the body of a problem to the 4xx and 5xx responses that a handler describes without a body. References to
/// shared responses are left unchanged.
fn add_problem_bodies(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        let RefOr::T(response) = response else { continue };
        if status.starts_with(['4', '5']) && response.content.is_empty() {
            response.content.insert(PROBLEM_JSON.to_owned(), problem_content().into());
        }
    }
}

/// Adds an error response, unless the handler describes that status itself.
fn add_problem(operation: &mut Operation, status: u16, text: &str) {
    let response = ResponseBuilder::new().description(text).content(PROBLEM_JSON, problem_content()).build();
    operation.responses.responses.entry(status.to_string()).or_insert(response.into());
}

fn problem_content() -> Content {
    ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build()
}
