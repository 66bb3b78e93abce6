import Strata

/// A shelf of the shop. A shelf with items cannot be deleted.
@Model final class Shelf: ManagedObjectLifecycle {
    @Attribute(.unique) var name: String
    @Relationship(deleteRule: .deny, inverse: \Item.shelf) var items: [Item]

    init(name: String) { self.name = name }

    func validateForInsert() throws {
        guard name.isPathSegment else { throw InvalidField(name: "name", rule: .pathSegment) }
    }
}

/// A kind of goods, with the number of pieces in stock.
@Model final class Item: ManagedObjectLifecycle {
    @Attribute(.unique) var sku: String
    var title: String
    @Attribute(.indexed) var quantity: Int
    /// The number of saved versions. A client sends it back with a change, which is refused if the item has changed meanwhile.
    var revision = 1
    var shelf: Shelf?

    init(sku: String, title: String, quantity: Int) {
        self.sku = sku
        self.title = title
        self.quantity = quantity
    }

    func validateForInsert() throws {
        guard sku.isPathSegment else { throw InvalidField(name: "sku", rule: .pathSegment) }
        try validateForUpdate()
    }

    func validateForUpdate() throws {
        guard !title.isEmpty else { throw InvalidField(name: "title", rule: .notEmpty) }
        guard quantity >= 0 else { throw InvalidField(name: "quantity", rule: .notNegative) }
    }
}

/// The error of an object that cannot be saved.
struct InvalidField: Error, CustomStringConvertible {
    enum Rule: String {
        case pathSegment = "must have 1 to 64 letters, digits, dots, hyphens or underscores"
        case notEmpty = "must not be empty"
        case notNegative = "must not be negative"
    }

    let name: String
    let rule: Rule

    var description: String { "\(name) \(rule.rawValue)" }
}

extension String {
    /// Whether the text can be a segment of a path without escapes. A path gives `.` and `..` another meaning.
    fileprivate var isPathSegment: Bool {
        (1...64).contains(utf8.count) && contains { $0 != "." }
            && allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || ".-_".contains($0)) }
    }
}
