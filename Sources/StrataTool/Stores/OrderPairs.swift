import ObjectGraph
import StoreInterface
import StoreModel

/// The pairs of a store, which tell to which of several links the order of a many-to-many relationship belongs.
struct OrderPairs {
    private let description: StoreDescription
    private let schema: StoreSchema
    /// The greatest number of pairs that are compared.
    private static let limit = 1000

    init(_ description: StoreDescription, _ schema: StoreSchema) {
        self.description = description
        self.schema = schema
    }

    /// Returns the link that has the pairs of an order; nil if several links have them, or if they cannot be read. If neither the order nor
    /// the links have pairs, all links are alike.
    /// - Parameters:
    ///   - order: The hidden entity.
    ///   - links: Links that lead to the entity with the ordered relationship.
    func link(of order: EntityIndex, among links: [LinkIndex]) -> LinkIndex? {
        guard !links.isEmpty, let left = try? linksWithPairs(of: order, among: links), left.count == 1 else { return nil }
        return left[0]
    }

    private func linksWithPairs(of order: EntityIndex, among links: [LinkIndex]) throws -> [LinkIndex] {
        let snapshot = try description.open(schema).snapshot()
        let columns = EntitySchema.orderColumns
        let entity = schema.entities[order]
        guard let owners = entity.columns[columns.owner].destination,
            let destination = entity.columns[columns.member].destination
        else { return [] }
        func members(_ link: LinkIndex, of owner: ObjectKey) throws -> [ObjectKey] {
            try snapshot.related(.link(link, .backward, destination: destination), to: owner)
        }
        var left = links
        /// A position without a pair has no effect, so that a comparison may fail for all links.
        func narrow(_ isRight: (LinkIndex) throws -> Bool) rethrows {
            let found = try left.filter(isRight)
            if !found.isEmpty { left = found }
        }
        var read = 0
        for number in try snapshot.pageNumbers(order) where left.count > 1 && read < Self.limit {
            guard let page = try snapshot.page(order, number) else { continue }
            for slot in SlotIterator(page.presence) where left.count > 1 {
                read += 1
                guard let owner = try page.value(slot, columns.owner).referenceKey,
                    let member = try page.value(slot, columns.member).referenceKey
                else { continue }
                try narrow { try members($0, of: owner).contains(member) }
                if left.count == 1 { break }
                // One list may contain another.
                let count = try snapshot.related(.referrers(entity: order, column: columns.owner), to: owner).count
                try narrow { try members($0, of: owner).count == count }
            }
        }
        guard read == 0 else { return left }
        let isEmpty = try snapshot.keys(StoreQuery(entity: owners)).allSatisfy { owner in
            try links.allSatisfy { try members($0, of: owner).isEmpty }
        }
        return isEmpty ? Array(links.prefix(1)) : left
    }
}
