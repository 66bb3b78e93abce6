import StoreInterface
import StoreModel

/// Checks the positions of ordered relationships in a store.
struct OrderVerification {
    let snapshot: any StoreSnapshot
    let rules: RelationshipRules
    /// Called before each page. An error ends the check.
    let willReadPage: () throws -> Void

    /// Returns the positions that no version of this format has, and those in many-to-many relationships that have no pair. O(store).
    func findings() throws -> [VerificationFinding] {
        var findings: [VerificationFinding] = []
        for (number, entity) in snapshot.schema.entities.enumerated(as: EntityIndex.self) {
            for column in entity.columnIndices where entity.isPosition(column) {
                try forEachObject(of: number) { key, page, slot in
                    guard case .data(let bytes) = try page.value(slot, column), Position(bytes: bytes).numbers == nil else {
                        return
                    }
                    findings.append(
                        VerificationFinding(
                            "\(entity.name) \(key) has no valid \(entity.columns[column].name): \(bytes.count) bytes that are no "
                                + "position. Move the object in its list"))
                }
            }
        }
        for order in rules.orders.joined() { try addUnpaired(order, to: &findings) }
        return findings
    }

    private func addUnpaired(_ order: OrderEntity, to findings: inout [VerificationFinding]) throws {
        var members: [ObjectKey: Set<ObjectKey>] = [:]
        let relation = Relation.link(order.link, order.direction, destination: order.memberEntity)
        try forEachObject(of: order.number) { key, page, slot in
            let owner = try page.value(slot, OrderEntity.owner).referenceKey
            let member = try page.value(slot, OrderEntity.member).referenceKey
            if let owner, members[owner] == nil { members[owner] = Set(try snapshot.related(relation, to: owner)) }
            if let owner, let member, members[owner]?.contains(member) == true { return }
            findings.append(
                VerificationFinding(
                    "\(order.schema.name) \(key) is a position of \(owner.map { "\($0)" } ?? "nothing") and "
                        + "\(member.map { "\($0)" } ?? "nothing"), which are not related. Relate them, and remove the relation again"
                ))
        }
    }

    private func forEachObject(of entity: EntityIndex, _ body: (ObjectKey, any StorePage, Int) throws -> Void) throws {
        for number in try snapshot.pageNumbers(entity) {
            try willReadPage()
            guard let page = try snapshot.page(entity, number) else { continue }
            for slot in SlotIterator(page.presence) { try body(PageAddress.key(page: number, slot: slot), page, slot) }
        }
    }
}
