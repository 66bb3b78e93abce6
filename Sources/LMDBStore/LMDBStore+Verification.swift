import StoreInterface

extension LMDBStore {
    /// Walks one snapshot: every page in full, every index against the objects both ways, references and links, the history.
    ///
    /// Reads the whole file once and looks every indexed value up: about 1 µs an object and index. Stops after 200 findings.
    public func verify() throws -> [VerificationFinding] {
        var verifier = Verifier(try newestSnapshot())
        do {
            try verifier.run()
        } catch let error as StoreError where error.code == .damaged {
            verifier.note(error.message)
        }
        return verifier.findings
    }
}
