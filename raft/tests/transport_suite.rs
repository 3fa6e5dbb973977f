//! The contract of the transport, run over QUIC on loopback and over the in-process network; then
//! what only one of the two has.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected fails there"
)]

mod transport_world;

use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use nexus_raft::transport::memory::{LinkRule, MemoryNet};
use nexus_raft::transport::{CallError, Lane, StreamError, Transport, code};
use tokio::time::{Instant, timeout};

use transport_world::{
    ANSWER_OF, COUNT, ECHO, ECHO_STREAM, REFUSE, SILENT, World, eventually, say,
};

const LIMIT: Duration = Duration::from_secs(10);

/// Runs each contract test over both networks.
macro_rules! both {
    ($($name:ident),* $(,)?) => {
        mod over_quic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() { super::$name(super::World::quic()).await; })*
        }
        mod over_memory {
            $(#[tokio::test]
            async fn $name() { super::$name(super::World::memory()).await; })*
        }
    };
}

both!(
    a_call_is_answered_on_every_lane,
    concurrent_calls_each_get_their_answer,
    frames_up_to_the_limit_pass_and_larger_ones_do_not,
    a_refusal_carries_code_and_text,
    a_long_stream_keeps_ten_thousand_frames_in_order,
    a_stream_that_is_dropped_ends_and_one_that_is_broken_off_fails,
    a_peer_that_comes_back_is_found_again,
    a_silent_peer_times_out_as_sent,
    nobody_at_the_address_is_not_sent,
    a_foreign_cluster_is_refused_by_name,
    another_protocol_version_is_refused_on_both_sides,
    an_old_boot_is_refused_with_the_owners_words,
    a_removed_member_is_refused_at_once,
    disconnect_breaks_streams_and_the_next_call_dials,
    redial_breaks_what_this_side_has_dialled_and_nothing_else,
);

async fn a_call_is_answered_on_every_lane(world: World) {
    let one = world.start(1).await;
    let two = world.start(2).await;
    for lane in Lane::ALL {
        let answer = one.call(2, lane, say(ECHO, b"hello"), LIMIT).await.unwrap();
        assert_eq!(answer, say(ECHO, b"hello"), "lane {lane}");
        two.call(1, lane, say(ECHO, b"back"), LIMIT).await.unwrap();
    }
    let peers = two.handler.peers();
    assert!(peers.iter().all(|peer| peer.node == 1 && peer.hello.software == "suite"), "{peers:?}");
    assert!(one.directory.was_reached(2), "the address that worked was not reported");
}

async fn concurrent_calls_each_get_their_answer(world: World) {
    let one = world.start(1).await;
    let _two = world.start(2).await;
    let calls = (0..256_u32).map(|number| {
        let transport = one.transport.clone();
        async move {
            let request = say(ECHO, &number.to_le_bytes());
            let answer = transport.call(2, Lane::Rpc, request.clone(), LIMIT).await;
            assert_eq!(answer, Ok(request));
        }
    });
    join_all(calls).await;
}

async fn frames_up_to_the_limit_pass_and_larger_ones_do_not(world: World) {
    let one = world.start(1).await;
    let _two = world.start(2).await;
    for lane in Lane::ALL {
        let limit = lane.frame_bytes_max();
        let mut whole = vec![7; limit];
        whole[0] = ECHO;
        let answer = one.call(2, lane, whole.clone().into(), LIMIT).await.unwrap();
        assert!(answer == whole, "lane {lane}: the answer differs");
        whole.push(7);
        let error = one.call(2, lane, whole.into(), LIMIT).await.unwrap_err();
        let expected = CallError::TooLarge { node: 2, bytes: limit + 1, limit, sent: false };
        assert_eq!(error, expected);
        let wanted = u32::try_from(limit + 1).unwrap();
        let error =
            one.call(2, lane, say(ANSWER_OF, &wanted.to_le_bytes()), LIMIT).await.unwrap_err();
        assert!(!error.certainly_not_sent(), "{error:?}");
        // The connection lives on.
        one.call(2, lane, say(ECHO, b"on"), LIMIT).await.unwrap();
        let mut stream = one.transport.open(2, lane, ECHO_STREAM, LIMIT).await.unwrap();
        let error = stream.sender.send(vec![0; limit + 1].into()).await.unwrap_err();
        assert_eq!(error, StreamError::TooLarge { bytes: limit + 1, limit });
    }
}

async fn a_refusal_carries_code_and_text(world: World) {
    let one = world.start(1).await;
    let _two = world.start(2).await;
    let error = one.call(2, Lane::Rpc, say(REFUSE, b"not today"), LIMIT).await.unwrap_err();
    let text = "not today".to_owned();
    assert_eq!(error, CallError::Refused { node: 2, code: 1234, text, sent: true });
}

async fn a_long_stream_keeps_ten_thousand_frames_in_order(world: World) {
    let one = world.start(1).await;
    let _two = world.start(2).await;
    let stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    let (mut sender, mut receiver) = (stream.sender, stream.receiver);
    let sending = async {
        for number in 0..10_000_u32 {
            // A large frame now and then, so that both ways of laying them out are met.
            let mut frame = number.to_le_bytes().to_vec();
            if number % 1000 == 0 {
                frame.resize(100_000, 1);
            }
            sender.send(frame.into()).await.unwrap();
        }
        sender.finish();
    };
    let receiving = async {
        for number in 0..10_000_u32 {
            let frame = receiver.recv().await.unwrap().unwrap();
            assert_eq!(frame[..4], number.to_le_bytes(), "frame {number}");
        }
        assert_eq!(receiver.recv().await, None);
    };
    timeout(Duration::from_secs(60), async { tokio::join!(sending, receiving) }).await.unwrap();
}

async fn a_stream_that_is_dropped_ends_and_one_that_is_broken_off_fails(world: World) {
    let one = world.start(1).await;
    let _two = world.start(2).await;
    let mut stream = one.transport.open(2, Lane::Log, COUNT, LIMIT).await.unwrap();
    for _ in 0..10 {
        stream.sender.send(Bytes::from_static(b"frame")).await.unwrap();
    }
    drop(stream.sender);
    let count = timeout(LIMIT, stream.receiver.recv()).await.unwrap().unwrap().unwrap();
    assert_eq!(count, Bytes::from_static(b"10 ended"));

    let mut stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    stream.sender.send(Bytes::from_static(b"there?")).await.unwrap();
    stream.receiver.recv().await.unwrap().unwrap();
    stream.sender.abort();
    let count = timeout(LIMIT, stream.receiver.recv()).await.unwrap().unwrap().unwrap();
    assert_eq!(count, Bytes::from_static(b"0 failed"));
}

async fn a_peer_that_comes_back_is_found_again(world: World) {
    let one = world.start(1).await;
    let two = world.start(2).await;
    let mut stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    stream.sender.send(Bytes::from_static(b"there?")).await.unwrap();
    stream.receiver.recv().await.unwrap().unwrap();
    one.call(2, Lane::Rpc, say(ECHO, b"first"), LIMIT).await.unwrap();

    two.crash();
    let two = world.start(2).await;
    let began = Instant::now();
    eventually("the node answers after its restart", || async {
        let limit = Duration::from_millis(500);
        one.call(2, Lane::Rpc, say(ECHO, b"again"), limit).await.map(|_| ())
    })
    .await;
    assert!(began.elapsed() < Duration::from_secs(3), "found after {:?}", began.elapsed());
    let ended = timeout(LIMIT, async {
        loop {
            match stream.receiver.recv().await {
                Some(Ok(_)) => {}
                other => return other,
            }
        }
    });
    assert!(matches!(ended.await.unwrap(), Some(Err(_)) | None), "the old stream lives");
    assert_eq!(two.handler.peers().last().map(|peer| peer.node), Some(1));
}

async fn a_silent_peer_times_out_as_sent(world: World) {
    let one = world.start(1).await;
    let _two = world.start(2).await;
    one.call(2, Lane::Rpc, say(ECHO, b"warm"), LIMIT).await.unwrap();
    let limit = Duration::from_millis(200);
    let began = Instant::now();
    let error = one.call(2, Lane::Rpc, say(SILENT, b""), limit).await.unwrap_err();
    assert_eq!(error, CallError::TimedOut { node: 2, sent: true });
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    // A slow handler on a living peer does not cost the connection.
    one.call(2, Lane::Rpc, say(SILENT, b""), limit).await.unwrap_err();
    one.call(2, Lane::Rpc, say(SILENT, b""), limit).await.unwrap_err();
    one.call(2, Lane::Rpc, say(ECHO, b"on"), LIMIT).await.unwrap();
}

async fn nobody_at_the_address_is_not_sent(world: World) {
    let one = world.start(1).await;
    let error = one.call(9, Lane::Log, say(ECHO, b""), LIMIT).await.unwrap_err();
    assert!(matches!(error, CallError::Unreachable { node: 9, .. }), "{error:?}");
    assert!(error.certainly_not_sent());
    let two = world.start(2).await;
    two.crash();
    let limit = Duration::from_millis(300);
    let error = one.call(2, Lane::Log, say(ECHO, b""), limit).await.unwrap_err();
    assert!(error.certainly_not_sent(), "{error:?}");
    eventually("the failure is known at once", || async {
        match one.call(2, Lane::Log, say(ECHO, b""), Duration::from_millis(300)).await {
            Err(CallError::Unreachable { .. }) => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

async fn a_foreign_cluster_is_refused_by_name(world: World) {
    let one = world.start(1).await;
    let foreign = world.foreign("othercluster").start(2).await;
    world.publish(2, &foreign);
    let error = one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap_err();
    let CallError::Refused { text, sent: false, .. } = &error else { panic!("{error:?}") };
    assert!(text.contains("othercluster") && text.contains("home"), "{text}");
    assert_eq!(foreign.handler.calls(), 0);
}

async fn another_protocol_version_is_refused_on_both_sides(world: World) {
    let one = world.start(1).await;
    let two = world.start(2).await;
    two.directory.change_hello(|hello| hello.protocol = 7);
    for (caller, called) in [(&one, 2), (&two, 1)] {
        let error = caller.call(called, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap_err();
        let CallError::Refused { code, text, sent: false, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(*code, code::PROTOCOL);
        assert!(text.contains("protocol version") && text.contains("upgrade"), "{text}");
    }
}

async fn an_old_boot_is_refused_with_the_owners_words(world: World) {
    let one = world.start(1).await;
    let two = world.start(2).await;
    two.directory.refuse_boots_below(5);
    let error = one.call(2, Lane::Log, say(ECHO, b""), LIMIT).await.unwrap_err();
    let CallError::Refused { node: 2, code: 2001, text, sent: false } = &error else {
        panic!("{error:?}")
    };
    assert!(text.contains("in use twice"), "{text}");
    one.directory.change_hello(|hello| hello.boot = 5);
    one.transport.disconnect(2);
    one.call(2, Lane::Log, say(ECHO, b""), LIMIT).await.unwrap();
}

async fn a_removed_member_is_refused_at_once(world: World) {
    let one = world.start(1).await;
    let two = world.start(2).await;
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    two.directory.remove(1);
    let calls = two.handler.calls();
    for _ in 0..2 {
        let error = one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap_err();
        let CallError::Refused { code: 2002, text, .. } = &error else { panic!("{error:?}") };
        assert!(text.contains("not a member"), "{text}");
    }
    assert_eq!(two.handler.calls(), calls, "a removed member was listened to");
    // It is not called either.
    let error = two.call(1, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap_err();
    assert!(error.certainly_not_sent(), "{error:?}");
}

async fn disconnect_breaks_streams_and_the_next_call_dials(world: World) {
    let one = world.start(1).await;
    let two = world.start(2).await;
    let mut stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    stream.sender.send(Bytes::from_static(b"there?")).await.unwrap();
    stream.receiver.recv().await.unwrap().unwrap();
    two.transport.disconnect(1);
    let ended = timeout(LIMIT, stream.receiver.recv()).await.unwrap();
    assert!(matches!(ended, Some(Err(_))), "{ended:?}");
    one.call(2, Lane::Log, say(ECHO, b"anew"), LIMIT).await.unwrap();
}

async fn redial_breaks_what_this_side_has_dialled_and_nothing_else(world: World) {
    let one = world.start(1).await;
    let two = world.start(2).await;
    let mut out = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    let mut back = two.transport.open(1, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    for stream in [&mut out, &mut back] {
        stream.sender.send(Bytes::from_static(b"there?")).await.unwrap();
        stream.receiver.recv().await.unwrap().unwrap();
    }
    one.transport.redial(2);
    let ended = timeout(LIMIT, out.receiver.recv()).await.unwrap();
    assert!(matches!(ended, Some(Err(_))), "{ended:?}");
    one.call(2, Lane::Log, say(ECHO, b"anew"), LIMIT).await.unwrap();
    back.sender.send(Bytes::from_static(b"still there?")).await.unwrap();
    let answer = timeout(LIMIT, back.receiver.recv()).await.unwrap();
    assert!(matches!(answer, Some(Ok(_))), "{answer:?}");
}

#[path = "transport_world/memory_only.rs"]
mod memory_only;
#[path = "transport_world/quic_only.rs"]
mod quic_only;
