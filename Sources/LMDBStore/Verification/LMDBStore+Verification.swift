import LMDB
import StoreInterface

extension LMDBStore {
    /// Walks one snapshot: every page in full, every index against the objects both ways, references and links, the history.
    ///
    /// Reads the whole file once and looks every indexed value up: about 1 µs an object and index. Stops after 200 findings.
    public func verify() throws -> [VerificationFinding] {
        let damage = try treeDamage()
        // LMDB would crash on pages of its own that are wrong, so the walk through it has to wait for their repair.
        guard damage.isEmpty else { return damage.map { VerificationFinding($0) } }
        var verifier = Verifier(try newestSnapshot())
        do {
            try verifier.run()
        } catch let error as StoreError where error.code == .damaged {
            verifier.note(error.message)
        }
        return verifier.findings
    }

    /// What is wrong with the pages of LMDB's trees, read from the file without LMDB.
    private func treeDamage() throws -> [String] {
        for _ in 0..<8 {
            let snapshot = try newestSnapshot()
            if case .damaged(let reason) = try mappingErrors({ try MetaPages.read(path: url.path) }) { return [reason] }
            let findings = try mappingErrors {
                try TreeCheck.findings(path: url.path, transaction: snapshot.transactionNumber, scope: .everything)
            }
            // The snapshot keeps its pages from being written over until here.
            withExtendedLifetime(snapshot) {}
            if let findings { return findings }
        }
        return []
    }
}
