//! Why it is not known who a request is by.

/// Why it is not known who a request is by. Its text is for the person who sent it, and has nothing of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// It shows no token.
    NoToken,
    /// It shows none that this server knows.
    Unknown,
    /// It shows that of a caller, too late.
    Expired,
    /// A token is in its URL, whatever its headers show.
    InUrl,
    /// It is by a proxy, which names nobody, or several.
    Unnamed,
    /// It is by a proxy, for somebody whose own token was revoked or has expired.
    NotServed,
}

impl Stranger {
    /// The same without advice, for the administrator.
    pub(super) fn brief(self) -> &'static str {
        self.why().split(':').next().unwrap_or_default()
    }

    pub(super) fn why(self) -> &'static str {
        match self {
            Self::NoToken => {
                "this server asks for its token: send it as `Authorization: Bearer <token>`, or for a WebSocket as the subprotocols `everturn, \
                 bearer.<base64url of the token>`"
            }
            Self::Unknown => {
                "this server does not know this token: it is mistyped, was revoked or replaced, or is a provider's key; one of this \
                 server's goes into `Authorization: Bearer <token>` or `x-everturn-token: <token>`"
            }
            Self::Expired => "this token has expired: ask the administrator for another one",
            Self::InUrl => {
                "a token is in the URL, where logs keep it: send it in a header, as `Authorization: Bearer <token>`, and ask for another one"
            }
            Self::Unnamed => {
                "this token is a proxy's, which has to name one caller per request, in the header `x-everturn-caller` or that of `caller_header`"
            }
            Self::NotServed => {
                "the caller whom the proxy names is not served: its own token was revoked or has expired, or is a proxy's"
            }
        }
    }
}
