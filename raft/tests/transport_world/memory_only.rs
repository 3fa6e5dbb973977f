//! The faults of the in-process network.

use super::*;

/// Two nodes and the network between them.
async fn two() -> (World, MemoryNet, transport_world::Node, transport_world::Node) {
    let world = World::memory();
    let net = world.net.clone().unwrap();
    let one = world.start(1).await;
    let two = world.start(2).await;
    (world, net, one, two)
}

#[tokio::test]
async fn loss_times_calls_out_and_some_pass() {
    let (_world, net, one, two) = two().await;
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    net.set_rule(LinkRule { loss: 0.3, ..LinkRule::default() });
    let limit = Duration::from_secs(1);
    let calls = join_all((0..200).map(|_| one.call(2, Lane::Rpc, say(ECHO, b""), limit))).await;
    let mut answered = 0;
    for call in calls {
        match call {
            Ok(_) => answered += 1,
            Err(error) => assert_eq!(error, CallError::TimedOut { node: 2, sent: true }),
        }
    }
    // Both ways are lossy, so about half of the calls pass, and more of them are handled.
    assert!((60..140).contains(&answered), "{answered} of 200 answered");
    assert!(two.handler.calls() > answered, "{} handled", two.handler.calls());
}

#[tokio::test]
async fn delay_is_kept_within_its_bounds() {
    let (_world, net, one, _two) = two().await;
    net.set_rule(LinkRule::delayed(Duration::from_millis(20), Duration::from_millis(30)));
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    let calls = (0..50).map(|_| async {
        let began = Instant::now();
        one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
        began.elapsed()
    });
    let mut took = join_all(calls).await;
    took.sort();
    // The upper bound is the network's; how soon the machine gets to it is not.
    assert!(took[0] >= Duration::from_millis(40), "{took:?}");
    assert!(took[49] - took[0] >= Duration::from_millis(5), "all the same: {took:?}");
}

#[tokio::test]
async fn a_wall_stops_dials_one_way_and_lets_answers_through() {
    let (_world, net, one, two) = two().await;
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    net.wall(1, 2);
    let limit = Duration::from_millis(50);
    let walled = one.call(2, Lane::Rpc, say(ECHO, b""), limit).await;
    assert_eq!(walled, Err(CallError::TimedOut { node: 2, sent: false }));
    two.call(1, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    net.heal();
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_request_can_be_handled_twice() {
    let (_world, net, one, two) = two().await;
    net.set_rule(LinkRule { duplicate: 0.5, ..LinkRule::default() });
    for _ in 0..100 {
        one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    }
    eventually("second arrivals are handled", || async {
        let calls = two.handler.calls();
        if (120..180).contains(&calls) { Ok(()) } else { Err(calls) }
    })
    .await;
}

#[tokio::test]
async fn calls_overtake_each_other_and_streams_do_not() {
    let (_world, net, one, two) = two().await;
    let slow = LinkRule::delayed(Duration::ZERO, Duration::from_millis(50));
    net.set_rule(LinkRule { reorder: 0.2, ..slow });
    let calls = (0..50_u8).map(|number| {
        let transport = one.transport.clone();
        async move { transport.call(2, Lane::Rpc, say(ECHO, &[number]), LIMIT).await.unwrap() }
    });
    join_all(calls).await;
    let heard: Vec<u8> = two.handler.heard().iter().map(|request| request[1]).collect();
    assert!(!heard.is_sorted(), "nothing was overtaken: {heard:?}");

    let mut stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    for number in 0..50_u8 {
        stream.sender.send(vec![number].into()).await.unwrap();
    }
    for number in 0..50_u8 {
        assert_eq!(stream.receiver.recv().await.unwrap().unwrap()[0], number);
    }
}

#[tokio::test]
async fn a_cut_of_one_way_loses_requests_or_answers() {
    let (_world, net, one, two) = two().await;
    let limit = Duration::from_millis(100);
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    let mut stream = one.transport.open(2, Lane::Log, ECHO_STREAM, LIMIT).await.unwrap();
    stream.sender.send(Bytes::from_static(b"there?")).await.unwrap();
    stream.receiver.recv().await.unwrap().unwrap();

    net.cut(2, 1);
    assert!(matches!(stream.receiver.recv().await, Some(Err(StreamError::Broken(_)))));
    assert!(stream.sender.send(Bytes::from_static(b"more")).await.is_err());
    let error = one.call(2, Lane::Rpc, say(ECHO, b""), limit).await.unwrap_err();
    assert!(error.certainly_not_sent(), "no connection can be made: {error:?}");
    assert_eq!(two.handler.calls(), 1);

    net.heal();
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    two.call(1, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_cut_under_a_call_leaves_it_unknown() {
    let (_world, net, one, two) = two().await;
    one.call(2, Lane::Rpc, say(ECHO, b""), LIMIT).await.unwrap();
    let transport = one.transport.clone();
    let call = transport.call(2, Lane::Rpc, say(SILENT, b""), LIMIT);
    let cut = async {
        eventually("the request is handled", || async {
            let calls = two.handler.calls();
            if calls == 2 { Ok(()) } else { Err(calls) }
        })
        .await;
        net.partition(&[1], &[2]);
    };
    let (result, ()) = tokio::join!(call, cut);
    assert!(matches!(result, Err(CallError::Broken { sent: true, .. })), "{result:?}");
}

#[tokio::test]
async fn the_same_seed_meets_the_same_faults() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let (_world, net, one, _two) = two().await;
        net.set_rule(LinkRule { loss: 0.2, ..LinkRule::default() });
        let mut run = Vec::new();
        for _ in 0..40 {
            let limit = Duration::from_millis(60);
            run.push(one.call(2, Lane::Rpc, say(ECHO, b""), limit).await.is_ok());
        }
        runs.push(run);
    }
    assert_eq!(runs[0], runs[1]);
}
