import StoreInterface
import StoreModel

extension LMDBSnapshot {
    /// Returns a description of what ``keys(_:)`` does. Costs as much as finding the candidates, without reading pages.
    func explain(_ query: StoreQuery) throws -> String {
        try query.predicate.checkDepth()
        let entity = query.entity
        if !query.sort.isEmpty, let walk = try orderedWalk(query) {
            let index = "index on \(walk.access.index.words(entity, schema))"
            let how = walk.access.accessKind.isWhole ? "" : ", \(walk.access.accessKind.words)"
            let check = walk.isExact ? "" : "; the objects are checked on the way, a scan if few of them match"
            return "\(index)\(how), in its order\(check)"
        }
        var words: String
        if let found = try candidates(entity, query.predicate) {
            words = found.plan.words(entity, schema)
        } else {
            words = "scan of \(try pageCount(entity)) pages"
        }
        if !query.sort.isEmpty {
            let offset = max(0, query.offset)
            // If the sum is no number, all objects are kept.
            let kept = query.limit.flatMap { $0 <= .max - offset ? $0 + offset : nil }
            words += kept.map { "; the first \($0) kept while reading" } ?? "; sorted in memory"
        }
        return words
    }
}
