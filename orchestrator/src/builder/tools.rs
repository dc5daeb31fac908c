//! What turns may do: tools, approvals, reviews, reports.

use std::{sync::Arc, time::Duration};

use everturn_wire::RequiredReport;

use super::Builder;
use crate::{
    Policy, Reviewer, Tool, ToolSource,
    route::PREFIX,
    session::{ModelReviewer, Reviews},
};

impl Builder {
    /// Adds a tool. It replaces a tool with the same name.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// Adds a source of tools that may change at run time. A turn uses the tools available when it begins. On a name clash,
    /// tools added with [`Self::tool`] win, then the source added first.
    #[must_use]
    pub fn tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.tool_sources.push(source);
        self
    }

    /// Sets the policy for tools whose name matches a pattern, in which `*` matches any number of characters. The most
    /// specific pattern wins: an exact name, then the longest pattern, then the stricter policy. Default: the tool's own
    /// ([`Tool::policy`]).
    #[must_use]
    pub fn tool_policy(mut self, pattern: impl Into<String>, policy: Policy) -> Self {
        self.permissions.rules.add(pattern.into(), policy);
        self
    }

    /// Sets how long a call waits for a person's approval before it is denied. Default: no limit.
    #[must_use]
    pub fn approval_timeout(mut self, wait: Duration) -> Self {
        self.permissions.approval_timeout = Some(wait);
        self
    }

    /// Sets the reviewer for tools with [`Policy::Review`]. Default: none, so every review fails.
    #[must_use]
    pub fn reviewer(mut self, reviewer: Arc<dyn Reviewer>) -> Self {
        self.reviewer = Some(Reviews::Own(reviewer));
        self
    }

    /// Lets a model or route, given by its id, review tools with [`Policy::Review`], in place of a [`reviewer`](Self::reviewer). It
    /// has no tools, and receives the user's messages, the full call and its own earlier reviews in the conversation.
    #[must_use]
    pub fn review_with(mut self, model: impl Into<String>) -> Self {
        self.reviewer = Some(Reviews::Model(ModelReviewer::new(model.into())));
        self
    }

    /// Requires every turn to end with a report that matches a schema, submitted through the tool `final_report`: see
    /// [`StartTurn::final_report`](crate::StartTurn::final_report). Routes and messages may override it. An invalid schema
    /// accepts every report and logs a warning.
    #[must_use]
    pub fn final_report(mut self, report: RequiredReport) -> Self {
        self.reports.rest = Some(Arc::new(report));
        self
    }

    /// Requires turns on the named route to end with a report.
    #[must_use]
    pub fn route_report(mut self, route: &str, report: RequiredReport) -> Self {
        self.reports.routes.insert(format!("{PREFIX}{route}"), Arc::new(report));
        self
    }

    /// Sets the maximum number of steps of turns that need no report, unless [`Settings`](crate::kernel::Settings) set one. Turns
    /// that must report get 10.
    #[must_use]
    pub fn usual_max_steps(mut self, steps: u32) -> Self {
        self.usual_max_steps = Some(steps);
        self
    }

    /// Sets the deadline of a review, including all attempts. Default: 90 s.
    #[must_use]
    pub fn review_timeout(mut self, within: Duration) -> Self {
        self.permissions.review.within = within;
        self
    }

    /// Denies calls whose review fails. Default: a person is asked.
    #[must_use]
    pub fn deny_without_review(mut self) -> Self {
        self.permissions.review.falls_back_to_person = false;
        self
    }

    /// Sets the size limit of a tool result, in bytes. Longer results keep their beginning and end, with a line in between
    /// that says how much was omitted. Default: 256 KiB.
    #[must_use]
    pub fn max_tool_result(mut self, bytes: usize) -> Self {
        self.max_tool_result = bytes;
        self
    }

    /// Sets the limit on a call's live output, in bytes. The rest is dropped, and subscribers are told so. Default: 1 MiB.
    #[must_use]
    pub fn max_live_output(mut self, bytes: usize) -> Self {
        self.max_live_output = bytes;
        self
    }
}
