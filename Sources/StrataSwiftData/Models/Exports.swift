// SwiftData makes Foundation visible, and model files rely on it.
@_exported import Foundation
