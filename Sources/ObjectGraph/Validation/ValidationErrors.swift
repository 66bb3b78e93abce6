import StoreInterface
import StoreModel

/// The errors of a validation, each with the id of its object.
///
/// ```swift
/// do {
///     try await context.save()
/// } catch SaveError.validation(let errors) {
///     for violation in errors.ruleViolations { print(violation.message) }
/// }
/// ```
public struct ValidationErrors: Sendable {
    /// The number of errors that a batch, the writer or a report lists.
    static let listedByWriter = 100

    private var listed: [(ObjectID, any Error)] = []
    /// The number of errors found. A batch lists the first 100 of them.
    public private(set) var totalCount = 0

    init() {}

    mutating func append(_ id: ObjectID, _ error: any Error, listingAtMost limit: Int = .max) {
        totalCount += 1
        if listed.count < limit { listed.append((id, error)) }
    }

    mutating func append(_ violation: RuleViolation, listingAtMost limit: Int = .max) {
        guard let id = violation.objectID else { return }
        append(id, violation, listingAtMost: limit)
    }

    /// Counts errors that are not listed.
    mutating func countUnlisted(_ number: Int) { totalCount += number }

    /// Orders the errors by object. The errors of one object keep their order.
    mutating func sort() { listed.sort { ($0.0.entity, $0.0.key) < ($1.0.entity, $1.0.key) } }

    /// The broken rules of properties among the errors.
    public var ruleViolations: [RuleViolation] { listed.compactMap { $0.1 as? RuleViolation } }
}

extension ValidationErrors: RandomAccessCollection {
    /// 0, the position of the first error.
    public var startIndex: Int { 0 }
    /// The position after the last listed error.
    public var endIndex: Int { listed.count }
    /// The object and the error at a position.
    public subscript(position: Int) -> (ObjectID, any Error) { listed[position] }
}

extension ValidationErrors: ExpressibleByArrayLiteral {
    /// Creates the list of all errors of a validation.
    public init(arrayLiteral elements: (ObjectID, any Error)...) {
        listed = elements
        totalCount = elements.count
    }
}

extension ValidationErrors: CustomStringConvertible {
    private static let shown = 20

    /// The number of invalid objects, and the first errors, as one line.
    public var description: String {
        let objects = Set(listed.map(\.0)).count
        let head =
            totalCount == listed.count
            ? "\(objects) object(s) are not valid" : "\(totalCount) values are not valid, of which \(listed.count) are listed"
        let lines = listed.prefix(Self.shown).map { id, error in
            error is RuleViolation ? "\(error)" : "\(id): \(error)"
        }
        let more = totalCount > lines.count ? ["and \(totalCount - lines.count) more"] : []
        return "\(head): " + (lines + more).joined(separator: "; ")
    }
}
