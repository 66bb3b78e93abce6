import ByteScript
import ObjectGraph
import StoreInterface

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Turns off the leak checker, which reports boxes of lazy globals as lost because they are behind tagged pointers.
@_cdecl("__lsan_is_turned_off")
public func leaksAreNotChecked() -> CInt { 1 }

private let scheme = "strata://6B29FC40-CA47-1067-B31D-00DD010662DA"

/// Any text is the name of an object or not, as text and as a URL. Any JSON is a name, a token, a value, a change set or an
/// error. Whatever is accepted is written as it was.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzNames(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var script = ByteScript(start, count)
    let mode = script.byte()
    let bytes = script.rest()
    switch mode & 7 {
    case 0: name(String(decoding: bytes, as: UTF8.self))
    case 1: name(scheme + "/" + String(decoding: bytes, as: UTF8.self))
    case 2: json(ObjectID.self, bytes)
    case 3: json(HistoryToken.self, bytes)
    case 4: json(Value.self, bytes)
    default: json(ChangeSet.self, bytes)
    }
    return 0
}

private func name(_ text: String) {
    if let id = ObjectID(text) {
        precondition(id.description == text, "\(text) is taken for \(id)")
        precondition(ObjectID(url: id.url) == id, "\(id) does not come back from its URL")
    }
    if let url = URL(string: text), let id = ObjectID(url: url) {
        precondition(ObjectID(id.description) == id, "\(id) does not come back")
    }
}

private func json<T: Codable & Hashable>(_ type: T.Type, _ bytes: [UInt8]) {
    guard let value = try? JSONDecoder().decode(type, from: Data(bytes)) else { return }
    guard let encoded = try? JSONEncoder().encode(value), let again = try? JSONDecoder().decode(type, from: encoded) else {
        fatalError("\(value) cannot be written or not be read again")
    }
    // NaN equals nothing.
    precondition(again == value || value != value, "\(value) comes back as \(again)")
}
