"""The base of every form of a verb, and whether a sentence begins with one."""

from __future__ import annotations

import pytest

from refdesk.language_models.rules import imperatives, verbs

FORMS = """
    accept accepted accepting; access accessed accessing; acknowledge acknowledged acknowledging;
    activate activated activating; add added adding; adjust adjusted adjusting; advise advised advising;
    agree agreed agreeing; align aligned aligning; allocate allocated allocating; allow allowed allowing;
    analyze analyzed analyzing; analyse analysed analysing; apply applied applying; approve approved approving;
    archive archived archiving; arrange arranged arranging; assign assigned assigning; attach attached attaching;
    audit audited auditing; authorize authorized authorizing; back backed backing; bill billed billing;
    block blocked blocking; book booked booking; boot booted booting; browse browsed browsing; build built building;
    bypass bypassed bypassing; cache cached caching; calculate calculated calculating;
    calibrate calibrated calibrating; call called calling; cancel cancelled cancelling; cancel canceled canceling;
    capture captured capturing; change changed changing; charge charged charging; check checked checking;
    choose chosen choosing; clean cleaned cleaning; clear cleared clearing; click clicked clicking;
    clone cloned cloning; close closed closing; collect collected collecting; combine combined combining;
    commit committed committing; compare compared comparing; compile compiled compiling;
    complete completed completing; compress compressed compressing; configure configured configuring;
    confirm confirmed confirming; connect connected connecting; contact contacted contacting;
    control controlled controlling; convert converted converting; copy copied copying; correct corrected correcting;
    create created creating; credit credited crediting; debug debugged debugging; decline declined declining;
    decrease decreased decreasing; define defined defining; delete deleted deleting; deliver delivered delivering;
    deny denied denying; deploy deployed deploying; detach detached detaching; determine determined determining;
    dial dialled dialling; disable disabled disabling; disconnect disconnected disconnecting;
    dispatch dispatched dispatching; divide divided dividing; double doubled doubling;
    download downloaded downloading; downgrade downgraded downgrading; drag dragged dragging; drop dropped dropping;
    edit edited editing; eject ejected ejecting; email emailed emailing; embed embedded embedding;
    empty emptied emptying; enable enabled enabling; encrypt encrypted encrypting; enlarge enlarged enlarging;
    ensure ensured ensuring; enter entered entering; erase erased erasing; escalate escalated escalating;
    examine examined examining; exchange exchanged exchanging; execute executed executing;
    expand expanded expanding; expire expired expiring; explain explained explaining; export exported exporting;
    extend extended extending; extract extracted extracting; fax faxed faxing; file filed filing;
    fill filled filling; filter filtered filtering; fix fixed fixing; flash flashed flashing;
    flush flushed flushing; focus focused focusing; fold folded folding; follow followed following;
    force forced forcing; format formatted formatting; forward forwarded forwarding; grant granted granting;
    group grouped grouping; handle handled handling; hide hid hiding; identify identified identifying;
    ignore ignored ignoring; import imported importing; increase increased increasing;
    initialize initialized initializing; insert inserted inserting; install installed installing;
    invite invited inviting; invoice invoiced invoicing; isolate isolated isolating; issue issued issuing;
    join joined joining; label labelled labelling; launch launched launching; limit limited limiting;
    link linked linking; load loaded loading; locate located locating; lock locked locking; log logged logging;
    lower lowered lowering; manage managed managing; map mapped mapping; mark marked marking;
    match matched matching; measure measured measuring; merge merged merging; migrate migrated migrating;
    monitor monitored monitoring; move moved moving; mute muted muting; name named naming; note noted noting;
    notify notified notifying; obtain obtained obtaining; open opened opening; optimize optimized optimizing;
    order ordered ordering; override overridden overriding; pair paired pairing; pause paused pausing;
    permit permitted permitting; phone phoned phoning; pick picked picking; pin pinned pinning; ping pinged pinging;
    place placed placing; plan planned planning; plug plugged plugging; postpone postponed postponing;
    prepare prepared preparing; press pressed pressing; print printed printing; process processed processing;
    program programmed programming; promote promoted promoting; protect protected protecting;
    provide provided providing; provision provisioned provisioning; pull pulled pulling;
    purchase purchased purchasing; purge purged purging; push pushed pushing; query queried querying;
    queue queued queuing; quote quoted quoting; raise raised raising; reach reached reaching;
    reactivate reactivated reactivating; reboot rebooted rebooting; recalibrate recalibrated recalibrating;
    receive received receiving; recommend recommended recommending; reconcile reconciled reconciling;
    reconnect reconnected reconnecting; record recorded recording; recover recovered recovering;
    recreate recreated recreating; redirect redirected redirecting; reduce reduced reducing;
    refer referred referring; refill refilled refilling; refresh refreshed refreshing; refund refunded refunding;
    refuse refused refusing; regenerate regenerated regenerating; register registered registering;
    reimburse reimbursed reimbursing; reinstall reinstalled reinstalling; reject rejected rejecting;
    release released releasing; reload reloaded reloading; remove removed removing; rename renamed renaming;
    renew renewed renewing; repair repaired repairing; repeat repeated repeating; replace replaced replacing;
    reply replied replying; report reported reporting; request requested requesting; require required requiring;
    reroute rerouted rerouting; reschedule rescheduled rescheduling; reserve reserved reserving;
    resize resized resizing; resolve resolved resolving; restart restarted restarting; restore restored restoring;
    resume resumed resuming; retry retried retrying; return returned returning; reverse reversed reversing;
    review reviewed reviewing; revoke revoked revoking; rotate rotated rotating; route routed routing;
    save saved saving; scale scaled scaling; scan scanned scanning; schedule scheduled scheduling;
    scroll scrolled scrolling; search searched searching; secure secured securing; select selected selecting;
    separate separated separating; settle settled settling; share shared sharing; ship shipped shipping;
    shorten shortened shortening; sign signed signing; skip skipped skipping; solve solved solving;
    sort sorted sorting; start started starting; stop stopped stopping; store stored storing;
    stream streamed streaming; submit submitted submitting; subscribe subscribed subscribing;
    suspend suspended suspending; swap swapped swapping; swipe swiped swiping; switch switched switching;
    sync synced syncing; tag tagged tagging; tap tapped tapping; terminate terminated terminating;
    test tested testing; tick ticked ticking; tighten tightened tightening; toggle toggled toggling;
    track tracked tracking; transfer transferred transferring; translate translated translating;
    trigger triggered triggering; trim trimmed trimming; try tried trying; tune tuned tuning; type typed typing;
    uninstall uninstalled uninstalling; unlock unlocked unlocking; unmute unmuted unmuting;
    unplug unplugged unplugging; unsubscribe unsubscribed unsubscribing; update updated updating;
    upgrade upgraded upgrading; upload uploaded uploading; use used using; validate validated validating;
    verify verified verifying; void voided voiding; waive waived waiving; wait waited waiting;
    whitelist whitelisted whitelisting; wipe wiped wiping; withdraw withdrawn withdrawing; wrap wrapped wrapping;
    write written writing; zip zipped zipping; need needed needing; proceed proceeded proceeding;
    bleed bled bleeding; treat treated treating; defeat defeated defeating; target targeted targeting;
    budget budgeted budgeting; complain complained complaining; clip clipped clipping; equip equipped equipping;
    worship worshipped worshipping; develop developed developing; escape escaped escaping;
    describe described describing; absorb absorbed absorbing; assure assured assuring; occur occurred occurring;
    prefer preferred preferring; star starred starring; stare stared staring; step stepped stepping;
    shape shaped shaping; exclude excluded excluding; include included including; decode decoded decoding;
    encode encoded encoding; upvote upvoted upvoting; rewire rewired rewiring; reimage reimaged reimaging;
    lease leased leasing; age aged aging; damage damaged damaging; manufacture manufactured manufacturing;
    bake baked baking; leak leaked leaking; break broken breaking; speak spoken speaking; smoke smoked smoking;
    breathe breathed breathing; engage engaged engaging; belong belonged belonging;
    challenge challenged challenging; hang hung hanging; vote voted voting; pivot pivoted pivoting;
    spell spelled spelling; enroll enrolled enrolling; roll rolled rolling; bid bid bidding; vary varied varying;
    die died dying; paste pasted pasting; waste wasted wasting; solder soldered soldering; taste tasted tasting;
    sense sensed sensing; license licensed licensing; rinse rinsed rinsing; cleanse cleansed cleansing;
    nurse nursed nursing; assume assumed assuming; frame framed framing; stage staged staging; page paged paging;
    edge edged edging; judge judged judging; surge surged surging; swing swung swinging; bring brought bringing;
    hinge hinged hinging; singe singed singeing; tie tied tying; free freed freeing;
    guarantee guaranteed guaranteeing; see seen seeing; redo redone redoing; veto vetoed vetoing;
    echo echoed echoing; snooze snoozed snoozing; freeze frozen freezing; quiz quizzed quizzing;
    buzz buzzed buzzing; fuel fuelled fuelling; total totalled totalling; compel compelled compelling;
    mimic mimicked mimicking; panic panicked panicking; attack attacked attacking; bookmark bookmarked bookmarking;
    trek trekked trekking; rev revved revving; welcome welcomed welcoming; zoom zoomed zooming;
    customize customized customizing; benefit benefited benefiting; visit visited visiting;
    profit profited profiting; unite united uniting; excite excited exciting; exit exited exiting;
    deposit deposited depositing; prohibit prohibited prohibiting; recruit recruited recruiting;
    suit suited suiting; input inputted inputting; shout shouted shouting; scout scouted scouting;
    avoid avoided avoiding; decide decided deciding; guide guided guiding; fade faded fading; trade traded trading;
    read read reading; spread spread spreading; concede conceded conceding; supersede superseded superseding;
    impede impeded impeding; mean meant meaning; loan loaned loaning; line lined lining; outline outlined outlining;
    imagine imagined imagining; train trained training; ruin ruined ruining; shine shined shining;
    machine machined machining; mention mentioned mentioning; question questioned questioning;
    condition conditioned conditioning; button buttoned buttoning; prune pruned pruning; run run running;
    color colored coloring; colour coloured colouring; anchor anchored anchoring; mirror mirrored mirroring;
    refactor refactored refactoring; score scored scoring; explore explored exploring; answer answered answering;
    interfere interfered interfering; compute computed computing; distribute distributed distributing;
    reset reset resetting; interpret interpreted interpreting; compete competed competing; offset offset offsetting;
    market marketed marketing; heat heated heating; chat chatted chatting; float floated floating;
    bloat bloated bloating; initiate initiated initiating; negotiate negotiated negotiating;
    evaluate evaluated evaluating; rate rated rating; date dated dating; state stated stating;
    crawl crawled crawling; curl curled curling; cycle cycled cycling; shuffle shuffled shuffling;
    tackle tackled tackling; puzzle puzzled puzzling; tunnel tunnelled tunnelling; feel felt feeling;
    peel peeled peeling; signal signalled signalling; seal sealed sealing; appeal appealed appealing;
    fail failed failing; detail detailed detailing; profile profiled profiling; style styled styling;
    rule ruled ruling; overrule overruled overruling; haul hauled hauling; cool cooled cooling;
    console consoled consoling; blame blamed blaming; spam spammed spamming; scream screamed screaming;
    claim claimed claiming; aim aimed aiming; time timed timing; become become becoming;
    customise customised customising; vacuum vacuumed vacuuming; perfume perfumed perfuming;
    redeem redeemed redeeming; seem seemed seeming; convene convened convening; intervene intervened intervening;
    screen screened screening; like liked liking; evoke evoked evoking; provoke provoked provoking;
    look looked looking; shake shaken shaking; wake woken waking; pipe piped piping; gossip gossiped gossiping;
    slope sloped sloping; hope hoped hoping; loop looped looping; dupe duped duping; retype retyped retyping;
    clothe clothed clothing; probe probed probing; bribe bribed bribing; owe owed owing; sew sewed sewing;
    bias biased biasing; canvas canvased canvasing; alias aliased aliasing; unseal unsealed unsealing;
    tweak tweaked tweaking; soak soaked soaking; overwrite overwritten overwriting; degauss degaussed degaussing;
    defragment defragmented defragmenting; delegate delegated delegating; descale descaled descaling;
    grease greased greasing; lubricate lubricated lubricating; purify purified purifying; vent vented venting;
    drain drained draining; unclog unclogged unclogging; re-add re-added re-adding
"""
"""Base, participle and progressive form of each verb."""


@pytest.mark.parametrize("row", [row.split() for row in FORMS.split(";")], ids=lambda row: f"{row[0]} {row[1]}")
def test_the_base_of_a_form_is_the_verb(row: list[str]) -> None:
    base, *forms = row
    assert [verbs.get_base(form) for form in forms] == [base] * len(forms)


@pytest.mark.parametrize("said", ["bleed", "need", "proceed", "feed"])
def test_a_base_that_ends_as_participles_do_is_none(said: str) -> None:
    assert not verbs.is_past(said)
    assert verbs.get_base(said) == said


@pytest.mark.parametrize(
    ("said", "order"),
    [
        ("Bleed the radiator valve.", "Have the customer bleed the radiator valve"),
        ("Descale the machine with vinegar.", "Have the customer descale the machine with vinegar"),
        ("Please blot out the ink.", "Have the customer blot out the ink"),
        ("Replace batteries.", "Have the customer replace batteries"),
        ("Refill ink and wait.", "Have the customer refill ink and wait"),
        ("Restart it when the light is red.", "Have the customer restart it when the light is red"),
        ("Do not unplug it.", "Tell the customer not to unplug it"),
        ("Please don't close the window.", "Tell the customer not to close the window"),
        ("Please set the region to US and sign in.", "Have the customer set the region to US and sign in"),
        ("Try ME mode.", "Have the customer try ME mode"),
        ("Will IT call us?", "Ask whether IT will call you"),
        ("PLEASE CALL US.", "Have the customer CALL you"),
        ("I have added the user and synced the directory.", "Add the user and sync the directory"),
        ("Refund the customer.", "Refund the customer"),
        ("I cancelled the second parcel.", "Cancel the second parcel"),
        ("I open the page, find the charge and refund it.", "Open the page, find the charge and refund it"),
    ],
)
def test_an_order_is_an_order_whatever_its_verb(said: str, order: str) -> None:
    assert imperatives.word(said)[1] == order


@pytest.mark.parametrize(
    "said",
    [
        "Access to the site is blocked.",
        "Order 4477 was shipped.",
        "Monday the office is closed.",
        "Updated the driver.",
        "Looks the same to me.",
        "We need to restart the server.",
        "Glad the issue is fixed.",
    ],
)
def test_a_statement_is_no_order(said: str) -> None:
    assert imperatives.word(said)[0] == "tell"
