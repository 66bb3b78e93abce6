#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

// `localizedDescription` of each error that a program meets is its one line.

extension BatchError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension ContextError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension FixtureError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension HistoryError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension InvalidValue: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension ModelError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension RuleViolation: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension SnapshotError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension UndecodableAttribute: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}

extension UndoError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}
