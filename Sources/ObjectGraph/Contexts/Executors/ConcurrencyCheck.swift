import Dispatch

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Checks at run time what the compiler cannot check: that an object or context is used only on its executor (S171).
enum ConcurrencyCheck {
    #if DEBUG
        static let isOn = true
    #else
        static let isOn = ProcessInfo.processInfo.environment["STRATA_CONCURRENCY_DEBUG"] == "1"
    #endif

    static func verify(_ context: ManagedObjectContext) {
        if let executor = context.place.executor {
            precondition(
                executor.isCurrent,
                "the context \(context.name) is used off its executor; use perform, and pass ids, not objects")
        } else if let confinement = context.place.confinement {
            confinement.check(context.name)
        } else {
            MainActor.preconditionIsolated(
                "the context \(context.name) belongs to the main actor and is used off it; pass ids, not objects")
        }
    }
}
