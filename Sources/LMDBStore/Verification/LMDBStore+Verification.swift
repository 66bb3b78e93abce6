import LMDB
import StoreInterface
import StoreModel

extension LMDBStore {
    /// Checks one snapshot: every page in full, every index against the objects in both directions, references and links, and
    /// the history.
    ///
    /// Reads the whole file once and looks up every indexed value: about 1 µs per object and index. Stops after 200 findings.
    public func verify(cancellation: Cancellation) throws -> [VerificationFinding] {
        let damage = try treeDamage(cancellation)
        // LMDB would crash on its own damaged pages, so the other checks run only if there are none.
        guard damage.isEmpty else { return damage.map { VerificationFinding($0) } }
        var verifier = Verifier(try newestSnapshot(), cancellation)
        do {
            try verifier.run()
        } catch let error as StoreError where error.code == .damaged {
            verifier.note(error.message)
        }
        return verifier.findings
    }

    /// Checks everything, as ``verify(cancellation:)``, without a way to cancel.
    public func verify() throws -> [VerificationFinding] { try verify(cancellation: Cancellation()) }

    /// Returns the faults of the pages of LMDB's trees, read from the file without LMDB. Reports the first quarter of the work.
    private func treeDamage(_ cancellation: Cancellation) throws -> [String] {
        let progress = cancellation.part(0...0.25)
        for _ in 0..<8 {
            let snapshot = try newestSnapshot()
            if case .damaged(let reason) = try mappingErrors({ try MetaPages.read(path: url.path) }) { return [reason] }
            let findings = try mappingErrors {
                try TreeCheck.findings(
                    path: url.path, transaction: snapshot.transactionNumber, scope: .everything, readAtOpening: MetaTable.name,
                    isWanted: { pages, total in (try? progress.step(Int(pages), of: Int(total))) != nil })
            }
            try cancellation.check()
            // Until here, the snapshot keeps its pages from being overwritten.
            withExtendedLifetime(snapshot) {}
            if let findings { return findings }
        }
        return []
    }
}
