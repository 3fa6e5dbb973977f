//! `/mcp`: MCP over Streamable HTTP, served by this very node.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, FromRequest as _, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use nexus_adapter::streamable::{self, Delivery, Node, Sender, Streamable};
use nexus_contract::ApiError;
use nexus_contract::http::ToolCall;
use serde_json::{Map, Value};

use super::Shared;
use super::socket::{Leaving, Peer};

/// The server of `/mcp`.
pub(super) type Mcp = Streamable<Here>;

/// This node, as the server calls it.
#[derive(Debug)]
pub(super) struct Here(pub(super) Arc<Shared>);

impl Node for Here {
    async fn call(&self, call: ToolCall, from: IpAddr) -> Result<Map<String, Value>, ApiError> {
        self.0.call(call, from).await
    }
}

/// `POST /mcp`.
pub(super) async fn post(
    State(mcp): State<Arc<Mcp>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let sender = Sender { address: peer.address.ip(), instance: instance(request.uri()) };
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let body: Result<Bytes, BytesRejection> = Bytes::from_request(whole, &()).await;
    let (response, delivery) = match body {
        Ok(body) => {
            let (response, delivery) = mcp.answer(parts, &body, sender).await;
            (response, Some(delivery))
        }
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            (streamable::too_large(), None)
        }
        Err(_broke_off) => (streamable::broken_off(), None),
    };
    response.map(|body| Body::new(Said { body, delivery, leaving: peer.leaving }))
}

/// Returns the instance that a URL names, as in `/mcp?instance=builder`.
fn instance(uri: &Uri) -> Option<String> {
    let pairs = uri.query()?.split('&');
    // An id has no letter that would stand there in another form.
    let mut given = pairs.filter_map(|pair| pair.strip_prefix("instance="));
    given.next().map(str::to_owned)
}

/// An answer on its way to the socket.
struct Said {
    body: streamable::Body,
    delivery: Option<Delivery>,
    leaving: Leaving,
}

impl HttpBody for Said {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            // hyper has the last of it now.
            let delivery = self.delivery.take();
            delivery.into_iter().for_each(|delivery| self.leaving.add(delivery));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
