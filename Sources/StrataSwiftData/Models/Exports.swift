// Model files for Apple's systems use Foundation and Observation without a further import.
@_exported import Foundation
@_exported import Observation
