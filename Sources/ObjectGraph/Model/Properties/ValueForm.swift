import StoreInterface
import StoreModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The meaning of an attribute's bytes, which its column type does not tell.
enum AttributeContent: Sendable, Hashable {
    /// The value itself.
    case plain
    /// A JSON array.
    case elements
    /// The bytes of a decimal number.
    case decimal
    /// Other JSON.
    case encoded
    /// A value of a keyed collection, by the name of its type.
    case keyed(String)
    /// A position in an ordered relationship. If an object beside the pair has the position, the case names the member. If the member
    /// itself has the position, the name is nil.
    case place(of: String?)

    init<V: AttributeValue>(of type: V.Type) {
        if let type = type as? any AttributeContentProvider.Type {
            self = type.attributeContent
        } else if type is any CodableAttribute.Type {
            self = .encoded
        } else {
            self = (type as? any RawRepresentable.Type).map { Self.rawContent($0) } ?? .plain
        }
    }

    private static func rawContent<R: RawRepresentable>(_ type: R.Type) -> AttributeContent {
        (R.RawValue.self as? any AttributeValue.Type).map { AttributeContent(of: $0) } ?? .plain
    }
}

/// A type of attributes whose bytes have a meaning.
private protocol AttributeContentProvider {
    static var attributeContent: AttributeContent { get }
}

extension Decimal: AttributeContentProvider {
    fileprivate static var attributeContent: AttributeContent { .decimal }
}

extension Optional: AttributeContentProvider where Wrapped: AttributeValue {
    fileprivate static var attributeContent: AttributeContent { AttributeContent(of: Wrapped.self) }
}

extension RawAttribute: AttributeContentProvider {
    fileprivate static var attributeContent: AttributeContent { AttributeContent(of: V.RawValue.self) }
}

extension EncodedAttribute: AttributeContentProvider {
    fileprivate static var attributeContent: AttributeContent { V.self is any ElementCollection.Type ? .elements : .encoded }
}

/// A collection that is stored as a JSON array, or an optional of one.
private protocol ElementCollection {}
extension Array: ElementCollection {}
extension Set: ElementCollection {}
extension Optional: ElementCollection where Wrapped: ElementCollection {}

/// The way in which people read the values of a column: its type, and the meaning of its bytes (S172).
struct ValueForm: Sendable, Hashable {
    /// The type of the column; nil for computed values.
    var type: ColumnType?
    var content = AttributeContent.plain
    /// The name of the entity to which references lead.
    var destination: String?

    /// Returns a value as text: decimals as numbers, JSON as text that is cut like a long string, and references with their entity. Bytes
    /// of another meaning, and bytes that cannot be read, are shown as their size.
    func text(_ value: Value) -> String {
        if let destination, let key = value.referenceKey { return "\(destination)(id: \(key))" }
        guard let text = decoded(value) else { return value.text(as: type) }
        return content == .decimal ? text : Value.quoted(text, with: content == .keyed("String") ? "\"" : "")
    }

    /// Whether the values are positions in ordered relationships. People can only read whether two of them differ.
    var isPlace: Bool { if case .place = content { true } else { false } }

    /// The member whose position the values are, if an object beside the pair has the position.
    var member: String? { if case .place(let member) = content { member } else { nil } }

    /// Returns a value for mirrors: references and decimals as ``text(_:)``, because the mirror of `Decimal` shows its storage, and JSON
    /// as text.
    func child(_ value: Value) -> Any {
        if value.referenceKey != nil { return text(value) }
        return decoded(value) ?? value.content(as: type)
    }

    /// Returns the text of bytes that have a meaning; nil for other values.
    private func decoded(_ value: Value) -> String? {
        guard case .data(let bytes) = value else { return nil }
        return switch content {
        case .plain: nil
        case .decimal: Decimal(value)?.description
        // No bytes are the empty value, as the property reads.
        case .elements where bytes.isEmpty: "[]"
        case .encoded where bytes.isEmpty: "empty"
        case .elements, .encoded: String(bytes: bytes, encoding: .utf8)
        case .keyed(let type): StoredCollection.text(ofValue: bytes, type: type)
        case .place: "a place in the list"
        }
    }
}
