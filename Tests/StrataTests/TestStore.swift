import Strata

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store of one test's own, which can be opened again.
enum TestStore: CaseIterable {
    case memory

    /// Runs a test on the store's description and removes what it left.
    @MainActor func use(_ body: @MainActor (StoreDescription) async throws -> Void) async throws {
        let name = UUID().uuidString
        try await body(.memory(name: name))
    }
}
