import Observation
import TestSupport
import Testing

@testable import ObjectGraph

@Suite struct TrackingProbeTests {
    /// An object of a user's closure.
    private final class Captured: Sendable {}

    /// Catches: a probe that keeps what the closures of observers have captured for as long as its context lives.
    @Test func closuresThatWereNeverNotifiedAreReleasedAfterSomeTime() {
        var probe = TrackingProbe()
        weak var captured: Captured?
        do {
            let object = Captured()
            captured = object
            for _ in 0..<64 { Self.expectTracking(&probe, keeping: object) }
        }
        #expect(captured != nil)
        Self.expectNoTracking(&probe)
        #expect(captured == nil)
        Self.expectTracking(&probe, keeping: Captured())
    }

    /// Catches, under the address sanitizer: an access that is released twice or used afterwards.
    @Test func theProbeAnswersRightWhileItIsRenewed() {
        print("theProbeAnswersRight: STRATA_SEED=\(Seed.value)")
        var random = SeededGenerator(seed: Seed.value)
        var probe = TrackingProbe()
        for _ in 0..<2_000 {
            if random.chance(1, in: 20) {
                Self.expectNoTracking(&probe)
            } else {
                Self.expectTracking(&probe, keeping: Captured())
            }
        }
    }

    /// Catches: an access that is handed on with the recorded accesses of an earlier probe, or that two probes use at once.
    @Test func probesOfLaterContextsUseTheAccessesOfEarlierOnes() async {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for round in 0..<200 {
                        var probe = TrackingProbe()
                        Self.expectNoTracking(&probe)
                        if round.isMultiple(of: 2) { Self.expectTracking(&probe, keeping: Captured()) }
                        Self.expectNoTracking(&probe)
                    }
                }
            }
        }
    }

    private static func expectTracking(_ probe: inout TrackingProbe, keeping object: Captured) {
        let isTracking = withObservationTracking {
            probe.isTracking().0
        } onChange: {
            withExtendedLifetime(object) {}
        }
        #expect(isTracking)
    }

    private static func expectNoTracking(_ probe: inout TrackingProbe) {
        let isTracking = probe.isTracking().0
        #expect(!isTracking)
    }
}
