#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One stored value of a column.
///
/// A value carries the *storage class*, not the Swift type: all signed widths are `.int`, dates are `.double` (seconds since
/// the reference date), URLs are `.string`, Codable values are `.data`. ``ColumnType`` distinguishes them.
///
/// ```swift
/// let track = context.insert("Track")
/// track["title"] = "Baguette"
/// track["playCount"] = .int(Int64(plays))
/// if case .string(let title) = track["title"] { print(title) }
/// ```
@frozen
public enum Value: Sendable, Hashable {
    /// No value, for columns that are optional.
    case null
    /// A Boolean value.
    case bool(Bool)
    /// A signed integer of any width, or an unsigned integer of at most 32 bits.
    case int(Int64)
    /// Used only for columns of type `uint64`; narrower unsigned integers are `.int`.
    case uint(UInt64)
    /// A floating-point number of either width, or a date in seconds since the reference date.
    case double(Double)
    /// A string, or the text of a URL. Compared by Unicode code points.
    case string(String)
    /// Bytes, or an encoded `Codable` value.
    case data(Data)
    /// A UUID.
    case uuid(UUID)
    /// The key of an object in the destination entity of a reference column.
    case reference(ObjectKey)

    /// A Boolean value that indicates whether the value is null.
    @inlinable public var isNull: Bool {
        if case .null = self { true } else { false }
    }

    /// The key of a `.reference`; nil for a value of another storage class.
    @inlinable public var referenceKey: ObjectKey? {
        if case .reference(let key) = self { key } else { nil }
    }
}

extension Value {
    /// Returns zero, an empty value or the reference date: the value of a non-optional property without a stored value.
    public static func zero(of type: ColumnType) -> Value {
        switch type {
        case .bool: .bool(false)
        case .int8, .int16, .int32, .int64, .uint8, .uint16, .uint32: .int(0)
        case .uint64: .uint(0)
        case .float, .double, .date: .double(0)
        case .string: .string("")
        case .data: .data(.init())
        case .uuid: .uuid(.init(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
        case .reference: .null
        }
    }
}

extension Value {
    /// Returns whether two values have the same storage class and are equal. Strings are compared by code points, as
    /// everywhere in a store. Swift's own `==` treats canonically equivalent strings as equal. NaN equals nothing.
    public static func == (a: Value, b: Value) -> Bool {
        switch (a, b) {
        case (.null, .null): true
        case (.bool(let a), .bool(let b)): a == b
        case (.int(let a), .int(let b)): a == b
        case (.uint(let a), .uint(let b)): a == b
        case (.double(let a), .double(let b)): a == b
        case (.string(let a), .string(let b)): a == b && a.utf8.elementsEqual(b.utf8)
        case (.data(let a), .data(let b)): a == b
        case (.uuid(let a), .uuid(let b)): a == b
        case (.reference(let a), .reference(let b)): a == b
        default: false
        }
    }
}

extension Value {
    /// Returns whether two stored values are the same: equal, or both NaN. nil stands for the value of an object that does not exist.
    ///
    /// Comparisons of states use this, so that an unchanged NaN does not count as a change.
    @inlinable package static func areSame(_ a: Value?, _ b: Value?) -> Bool {
        if case .double(let x)? = a, case .double(let y)? = b { return x == y || x.isNaN && y.isNaN }
        return a == b
    }
}

extension Value {
    /// Orders two values of one column: null first, then by value. Strings order by Unicode code point, data by bytes.
    ///
    /// Values of different storage classes order by class, so that the order is total.
    /// - Returns: A negative number, zero or a positive number.
    public func order(_ other: Value) -> Int {
        switch (self, other) {
        case (.null, .null): 0
        case (.bool(let a), .bool(let b)): (a ? 1 : 0) - (b ? 1 : 0)
        case (.int(let a), .int(let b)): Self.sign(a, b)
        case (.uint(let a), .uint(let b)): Self.sign(a, b)
        case (.int(let a), .double(let b)): Self.doubleOrder(Double(a), b)
        case (.double(let a), .int(let b)): Self.doubleOrder(a, Double(b))
        case (.int(let a), .uint(let b)): a < 0 ? -1 : Self.sign(UInt64(a), b)
        case (.uint(let a), .int(let b)): b < 0 ? 1 : Self.sign(a, UInt64(b))
        case (.uint(let a), .double(let b)): Self.doubleOrder(Double(a), b)
        case (.double(let a), .uint(let b)): Self.doubleOrder(a, Double(b))
        case (.double(let a), .double(let b)): Self.doubleOrder(a, b)
        case (.string(let a), .string(let b)): Self.codePointOrder(a, b)
        case (.data(let a), .data(let b)): a == b ? 0 : (a.lexicographicallyPrecedes(b) ? -1 : 1)
        case (.uuid(let a), .uuid(let b)): Self.uuidOrder(a, b)
        case (.reference(let a), .reference(let b)): Self.sign(a, b)
        default: storageClass - other.storageClass
        }
    }

    private var storageClass: Int {
        switch self {
        case .null: 0
        case .bool: 1
        case .int, .uint, .double: 2
        case .string: 3
        case .data: 4
        case .uuid: 5
        case .reference: 6
        }
    }

    private static func sign<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : (a == b ? 0 : 1) }

    /// Compares two doubles. NaN orders after every other number and equal to itself, so that sorting stays total.
    private static func doubleOrder(_ a: Double, _ b: Double) -> Int {
        if a.isNaN || b.isNaN { return (a.isNaN ? 1 : 0) - (b.isNaN ? 1 : 0) }
        return sign(a, b)
    }

    /// Compares two strings by code point. UTF-8 bytes have the order of code points; Swift's own `<` compares canonical
    /// forms.
    static func codePointOrder(_ a: String, _ b: String) -> Int {
        var a = a
        var b = b
        return a.withUTF8 { left in
            b.withUTF8 { right in
                let common = min(left.count, right.count)
                for i in 0..<common where left[i] != right[i] { return left[i] < right[i] ? -1 : 1 }
                return left.count - right.count
            }
        }
    }

    private static func uuidOrder(_ a: UUID, _ b: UUID) -> Int {
        withUnsafeBytes(of: a.uuid) { left in
            withUnsafeBytes(of: b.uuid) { right in
                for i in 0..<16 where left[i] != right[i] { return left[i] < right[i] ? -1 : 1 }
                return 0
            }
        }
    }
}

extension Value: CustomStringConvertible {
    /// The value as text for messages. Strings of more than 60 characters are cut and followed by their byte count. Data is
    /// shown as its byte count only.
    public var description: String {
        switch self {
        case .null: "null"
        case .bool(let flag): "\(flag)"
        case .int(let number): "\(number)"
        case .uint(let number): "\(number)"
        case .double(let number): "\(number)"
        case .string(let text): Self.quoted(text)
        case .data(let data): "data of \(data.count) bytes"
        case .uuid(let uuid): uuid.uuidString
        case .reference(let key): "the object with the key \(key)"
        }
    }

    private static let shownCharacters = 60

    /// Returns a text between quotation marks. A text of more than 60 characters is cut and followed by its byte count.
    package static func quoted(_ text: String, with mark: String = "\"") -> String {
        // Whole characters, with a limit on code points: one character may have any number of them.
        let shown = text.prefix(shownCharacters).unicodeScalars.prefix(4 * shownCharacters)
        guard shown.endIndex < text.endIndex else { return mark + text + mark }
        return "\(mark)\(String(String.UnicodeScalarView(shown)))…\(mark) (\(text.utf8.count) bytes)"
    }
}
