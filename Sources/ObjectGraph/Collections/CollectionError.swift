#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An error of a keyed collection.
///
/// ```swift
/// do {
///     let draft = try drafts.value(forKey: "spring")
///     print(draft?.title ?? "no draft")
/// } catch CollectionError.undecodable(_, let key, let field, _) {
///     print("the field \(field ?? "?") of \(key) cannot be read; its bytes:", try drafts.bytes(forKey: "spring") ?? Data())
/// }
/// ```
public enum CollectionError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The file has keys or values of other types in the collection.
    case otherTypes(collection: String, stored: String, requested: String)
    /// A stored value does not decode as the collection's type. The field is nil if the whole value is unreadable.
    case undecodable(collection: String, key: String, field: String?, reason: String)
    /// A value cannot be encoded.
    case unencodable(collection: String, key: String, reason: String)
    /// A stored key is not of the collection's type of keys: an enumeration has no case with its raw value, or the file is damaged. Or the
    /// record of the collection's types is damaged.
    case unreadableKey(collection: String)
    /// The name of a collection is empty or contains a null character.
    case invalidName(String)
    /// The store cannot hold collections, because it was opened read-only from an older file or without a container.
    case unavailable(collection: String)

    /// The reason for the error and the remedy.
    public var description: String {
        switch self {
        case .otherTypes(let collection, let stored, let requested):
            "cannot open the collection \(collection): it holds \(stored), not \(requested). Use these types, or another name. "
                + "If the type of values was renamed, pass its former name: renamedFrom."
        case .undecodable(let collection, let key, let field, let reason):
            "cannot read \(collection)[\(key)]\(field.map { ", field \($0)" } ?? ""): \(reason). "
                + "Decode older values in the type's init(from:), or read bytes(forKey:)."
        case .unencodable(let collection, let key, let reason):
            "cannot store \(collection)[\(key)]: \(reason). Store a value that can be encoded."
        case .unreadableKey(let collection):
            "cannot read a key or the types of the collection \(collection): the bytes are not of the type that the program uses. If the "
                + "keys are an enumeration, add the missing case, or read the entries with storedEntries(of:). Otherwise, check the file "
                + "with verify()."
        case .invalidName(let name):
            "cannot open the collection \"\(name.replacing("\0", with: "\\0"))\": a name needs at least one character and no null character. "
                + "Choose another name."
        case .unavailable(let collection):
            "cannot write to the collection \(collection): the store was opened without collections. Open the file for writing with a "
                + "PersistentContainer."
        }
    }
}

extension CollectionError: LocalizedError {
    /// The description.
    public var errorDescription: String? { description }
}
