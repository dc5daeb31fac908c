//! A relay whose connections can be cut, like a laptop's network.

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

pub(crate) struct Proxy {
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
    cuts: watch::Sender<u32>,
}

impl Proxy {
    pub(crate) async fn before(authority: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cuts = watch::Sender::new(0);
        let (to, of) = (authority.to_owned(), cuts.clone());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, to.clone(), of.subscribe()));
            }
        });
        Self { url, cuts }
    }

    /// Closes every connection; new ones are accepted.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn carry(mut near: TcpStream, to: String, mut cuts: watch::Receiver<u32>) {
    let mut far = TcpStream::connect(to).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut near, &mut far) => {}
        _ = cuts.changed() => {}
    }
}
