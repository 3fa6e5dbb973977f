//! The calls of `nexus mcp`: over HTTP to the node of this machine, again and again while it is
//! away.

use nexus_contract::ApiError;
use nexus_contract::http::ToolCall;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

use crate::caller::{self, Process};
use crate::client::{ClientError, LocalNode};
use crate::server::Calls;
use crate::stdio::Options;

/// One client's way to the node. It lives as long as the client's pipe.
#[derive(Debug)]
pub(crate) struct Beside {
    node: LocalNode,
    options: Options,
    process: Process,
}

impl Beside {
    /// Makes the way. Nothing is opened: the node may be down.
    ///
    /// # Errors
    /// As [`LocalNode::new`].
    pub(crate) fn new(options: Options) -> Result<Self, ClientError> {
        let node = LocalNode::new(options.endpoint.clone())?;
        Ok(Self { node, options, process: Process::random() })
    }
}

impl Calls for Beside {
    fn asked(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<ToolCall, ApiError> {
        let claim = caller::claim(&context.meta);
        let client = context.client_info().map(|info| info.name);
        let cwd = &self.options.cwd;
        let instance = self.options.id.clone();
        Ok(ToolCall {
            tool: tool.to_owned(),
            args: Value::Object(arguments),
            instance_given: instance.is_some(),
            instance_id: Some(instance.unwrap_or_else(|| {
                caller::instance_id(&self.options.hostname, cwd, client.as_deref())
            })),
            caller: claim.caller,
            request_id: Some(claim.call_id.unwrap_or_else(|| self.process.next_request_id())),
            process: Some(self.process.id().to_owned()),
            cwd: Some(cwd.display().to_string()),
            client_name: client,
        })
    }

    async fn serve(
        &self,
        call: ToolCall,
        _context: &RequestContext<RoleServer>,
    ) -> Result<Map<String, Value>, ApiError> {
        let outcome = self.node.call_patiently(&call, self.options.patience).await;
        outcome.map_err(|error| error.into_api_error(call.request_id.as_deref()))
    }
}
